import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { runSteps, sliceSteps, type Steps } from "@throughline/core/internal";
import type { StoredRecord } from "@throughline/core";
import { buildContext, type Context, createHistory } from "@throughline/history";
import { historyTargets, validationSteps } from "../src/history-targets.ts";
import type { TargetName } from "../src/provider-mappings.ts";
import { contextSteps } from "../src/build-context.ts";
import { renderSteps } from "../src/replay-history.ts";

const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };

function messageAt(index: number): unknown {
  const id = `toolu_${Math.floor(index / 4)}`;
  const text = `Words ${index}.`;
  const reply = { role: "assistant", ...origin };
  const call = { type: "toolCall", id, name: "read", arguments: { path: "/a" } };
  const result = {
    role: "toolResult",
    toolCallId: id,
    toolName: "read",
    content: [{ type: "text", text }],
    isError: false,
  };
  const kinds = [
    { role: "user", content: text },
    { ...reply, content: [call], stopReason: "toolUse" },
    result,
    { ...reply, content: [{ type: "text", text }], stopReason: "stop" },
  ];
  return kinds[index % 4];
}

/** Records that say when their messages are looked at. */
function records(count: number, onLook: (seq: number) => void = () => {}): readonly StoredRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const seq = index + 1;
    const [id, parentId] = [`r${seq}`, index === 0 ? null : `r${index}`];
    const message = messageAt(index);
    const record = { type: "message", id, parentId, timestamp: "2026-11-29T00:00:00.000Z" };
    const watched = {
      ...record,
      get message() {
        onLook(seq);
        return message;
      },
    };
    const place = {
      seq,
      id,
      parentId,
      type: "message",
      side: false,
      tsMs: seq,
      storedAtMs: seq,
      bytes: 100,
      crc: null,
    };
    return { ...place, record: watched } as StoredRecord;
  });
}

/** The number of steps, and the most of something that is handled between two of them. */
function walked<Result>(steps: Steps<Result>, handled: Set<number>): { count: number; most: number; result: Result } {
  let [count, most] = [0, 0];
  for (;;) {
    handled.clear();
    const { done, value } = steps.next();
    most = Math.max(most, handled.size);
    if (done === true) return { count, most, result: value };
    count += 1;
  }
}

/** Calls of one reply are looked at together with their results. */
const fewTogether = 32;
const targets = [...historyTargets.keys()];

describe("a long session", () => {
  it("is built into a context a record at a time, in steps that grow with the records", { tags: ["slow"] }, () => {
    const handled = new Set<number>();
    const counts = [10_000, 20_000, 40_000].map((count) => {
      const { count: steps, most, result } = walked(contextSteps(records(count, (seq) => handled.add(seq))), handled);
      expect([result.messages.length, most <= fewTogether]).toEqual([count, true]);
      return steps / count;
    });
    expect(new Set(counts).size).toBe(1);
  });

  const sizes = [...targets.map((name) => [name, 2000] as const), ["anthropic", 10_000] as const];
  for (const [name, least] of sizes) {
    const tags = least > 2000 ? ["slow"] : [];
    const title = `is rendered and checked for ${name} a message at a time, in steps that grow with the messages, from ${least} on`;
    it(title, { tags }, () => {
      const handled = new Set<number>();
      const watched = (context: Context): Context => ({
        ...context,
        messages: context.messages.map((message, index) => {
          const { content } = message;
          return Object.defineProperty({ ...message }, "content", {
            enumerable: true,
            get: () => (handled.add(index), content),
          });
        }),
      });
      const mapping = historyTargets.get(name)?.mapping;
      if (mapping === undefined) throw new Error(name);
      const ratios = [least, 2 * least, 4 * least].map((count) => {
        const context = watched(buildContext(records(count)));
        const { count: steps, most, result } = walked(renderSteps(context, mapping, {}), handled);
        expect(most).toBeLessThanOrEqual(fewTogether);
        const sent = result.messages.map((message, index) => looked(message, () => handled.add(index)));
        const checked = walked(validationSteps[name](sent, origin.model), handled);
        expect([checked.result, checked.most <= fewTogether]).toEqual([[], true]);
        return [Math.round((steps / count) * 100), Math.round((checked.count / count) * 100)];
      });
      expect(new Set(ratios.map(String)).size).toBe(1);
    });
  }

  it("is prepared for a request in slices, and rendered meanwhile whole", { tags: ["slow"] }, async () => {
    let isWatching = true;
    const looks = new Set<number>();
    let most = 0;
    const all = records(60_000, (seq) => {
      looks.add(seq);
      most = Math.max(most, looks.size);
    });
    const watch = async (): Promise<void> => {
      for (; isWatching; looks.clear()) await nextTurn();
    };
    const watching = watch();
    const history = createHistory("anthropic");
    for (let from = 0; from < all.length; from += 1000) {
      history.append(all.slice(from, from + 1000));
      await nextTurn();
    }
    [most] = [0];
    looks.clear();
    await history.prepare();
    expect(most).toBeLessThanOrEqual(sliceSteps);
    const { itemsPaired, messagesCleaned } = history.work;
    const { messages } = history.render();
    expect([messages.length > 40_000, messagesCleaned]).toEqual([true, 60_000]);
    // What is left for the call itself is the last turn.
    expect(history.work.itemsPaired - itemsPaired).toBeLessThan(fewTogether);
    isWatching = false;
    await watching;
  });

  it("may grow, move and be rendered while it is prepared", { tags: ["slow"] }, async () => {
    const all = records(20_001);
    const history = createHistory("anthropic");
    history.append(all.slice(0, 20_000));
    const preparing = history.prepare();
    await nextTurn();
    history.append(all.slice(20_000));
    expect(history.render().messages).toEqual(rendered("anthropic", all));
    await preparing;
    const again = history.prepare();
    history.moveHead("r10000");
    expect(history.render().messages).toEqual(rendered("anthropic", all.slice(0, 10_000)));
    await again;
    expect(history.render().messages).toEqual(rendered("anthropic", all.slice(0, 10_000)));
  });
});

/** A message that says when it is looked at. */
function looked(message: unknown, onLook: () => void): unknown {
  return new Proxy(message as object, {
    get(target, key) {
      onLook();
      return Reflect.get(target, key) as unknown;
    },
  });
}

function rendered(name: TargetName, all: readonly StoredRecord[]): readonly unknown[] | undefined {
  const mapping = historyTargets.get(name)?.mapping;
  return mapping === undefined ? undefined : runSteps(renderSteps(buildContext(all), mapping, {})).messages;
}
