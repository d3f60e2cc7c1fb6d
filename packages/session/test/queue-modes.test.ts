import { describe, expect, it } from "vitest";
import { type AgentTool, hasErrorCode } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import type { Session } from "@throughline/session";
import { createManualClock } from "./scripted-sessions.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, outline, type Fixture } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };

interface Busy extends Fixture {
  readonly session: Session;
  /** Lets the first answer come. */
  answer(): void;
}

/** A session whose first turn waits for its answer, with these fields in the entry. */
async function busySession(
  entry: Readonly<Record<string, unknown>>,
  options: Parameters<typeof createFixture>[0] = {},
): Promise<Busy & { readonly first: ReturnType<Session["runTurn"]> }> {
  const gate = Promise.withResolvers<void>();
  const script = options.script ?? createScriptedModel({ text: "one", after: gate.promise });
  const fixture = createFixture({ ...options, script });
  const opening = await fixture.sessions.open(key);
  await updateEntry(fixture.store, ref, (before) => ({ ...before, ...entry }));
  await opening.refresh();
  const first = opening.runTurn("first");
  await calls(fixture, 1);
  return { ...fixture, session: opening, first, answer: () => gate.resolve() };
}

async function calls({ model }: Pick<Fixture, "model">, count: number): Promise<void> {
  while (model.requests.length < count) await new Promise((resolve) => setImmediate(resolve));
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const users = async ({ records }: Pick<Fixture, "records">): Promise<readonly unknown[]> =>
  (await records()).flatMap(({ record }) => {
    const message = record["message"] as { readonly role: string; readonly content: unknown } | undefined;
    return message?.role === "user" ? [message.content] : [];
  });

describe("words that arrive while a turn runs", () => {
  it.each([undefined, "followup", "queue", "a mode of tomorrow"])(
    "have a turn of their own with the mode %s [ENT-10b, C53]",
    async (queueMode) => {
      const busy = await busySession({ queueMode });
      const [second, third] = [busy.session.runTurn("second"), busy.session.runTurn("third")];
      busy.answer();
      const turns = await Promise.all([busy.first, second, third]);
      expect(turns.map(({ joined }) => joined)).toEqual([false, false, false]);
      expect(busy.model.requests).toHaveLength(3);
      await busy.sessions.close();
    },
  );

  it("are one turn with collect, each message a record of its own", async () => {
    const busy = await busySession({ queueMode: "collect" });
    const [second, third, fourth] = ["second", "third", "fourth"].map((text) => busy.session.runTurn(text));
    busy.answer();
    const turns = await Promise.all([busy.first, second, third, fourth]);
    expect(turns.map((turn) => turn?.joined)).toEqual([false, false, true, true]);
    expect(new Set(turns.slice(1).map((turn) => turn?.turnId)).size).toBe(1);
    expect(busy.model.requests).toHaveLength(2);
    expect(await users(busy)).toEqual(["first", "second", "third", "fourth"]);
    await busy.sessions.close();
  });

  it("leave a turn with an idempotency key, or a model of its own, to itself", async () => {
    const busy = await busySession({ queueMode: "collect" });
    const keyed = busy.session.runTurn("keyed", { idempotencyKey: "k" });
    const own = busy.session.runTurn("own", { system: "Be brief." });
    const plain = busy.session.runTurn("plain");
    busy.answer();
    const turns = await Promise.all([keyed, own, plain]);
    expect(turns.map(({ joined }) => joined)).toEqual([false, false, false]);
    expect(busy.model.requests.map(({ system }) => system)).toEqual(["Be kind.", "Be kind.", "Be brief.", "Be kind."]);
    await busy.sessions.close();
  });

  it("reach the running turn before its next call with steer, and follow it when it has none", async () => {
    const gate = Promise.withResolvers<string>();
    const tool: AgentTool = {
      definition: { name: "wait", description: "Waits.", inputSchema: {} },
      run: () => gate.promise,
    };
    const script = createScriptedModel({ calls: [{ id: "c1", name: "wait", arguments: {} }] }, "done", "after");
    const busy = await busySession({ queueMode: "steer" }, { script, tools: [tool] });
    const steered = busy.session.runTurn("stop at ten");
    await settle();
    gate.resolve("waited");
    const [first, joined] = await Promise.all([busy.first, steered]);
    expect(joined).toMatchObject({ turnId: first.turnId, joined: true, text: "done" });
    expect(JSON.stringify(busy.model.requests[1]?.messages)).toContain("stop at ten");
    expect(outline(await busy.records()).filter((word) => !word.startsWith("call"))).toEqual([
      "turn:open",
      "user",
      "assistant:toolUse",
      "toolResult",
      "user",
      "assistant:stop",
      "turn:done",
    ]);
    // Nobody runs: a turn of its own.
    expect((await busy.session.runTurn("again")).joined).toBe(false);
    await busy.sessions.close();
  });

  it("reach the running turn, or follow it, as the message says, whatever the entry says", async () => {
    const gate = Promise.withResolvers<string>();
    const tool: AgentTool = {
      definition: { name: "wait", description: "Waits.", inputSchema: {} },
      run: () => gate.promise,
    };
    const script = createScriptedModel({ calls: [{ id: "c1", name: "wait", arguments: {} }] }, "done", "after");
    const busy = await busySession({ queueMode: "steer" }, { script, tools: [tool] });
    const followed = busy.session.runTurn("afterwards", { queue: "followup" });
    const steered = busy.session.runTurn("stop at ten", { queue: "steer" });
    await settle();
    gate.resolve("waited");
    expect((await steered).joined).toBe(true);
    expect(await followed).toMatchObject({ joined: false, text: "after" });
    expect(await users(busy)).toEqual(["first", "stop at ten", "afterwards"]);
    await busy.sessions.close();
  });

  it("follow with steer when the running turn makes no more calls", async () => {
    const busy = await busySession({ queueMode: "steer" });
    const second = busy.session.runTurn("second");
    busy.answer();
    expect((await second).joined).toBe(false);
    expect(busy.model.requests).toHaveLength(2);
    await busy.sessions.close();
  });

  it.each(["steer-backlog", "steer+backlog"])("steer and follow with %s", async (queueMode) => {
    const gate = Promise.withResolvers<string>();
    const tool: AgentTool = {
      definition: { name: "wait", description: "Waits.", inputSchema: {} },
      run: () => gate.promise,
    };
    const script = createScriptedModel({ calls: [{ id: "c1", name: "wait", arguments: {} }] }, "done", "after");
    const busy = await busySession({ queueMode }, { script, tools: [tool] });
    const second = busy.session.runTurn("stop at ten");
    await settle();
    gate.resolve("waited");
    expect(await second).toMatchObject({ joined: false, text: "after" });
    expect(await users(busy)).toEqual(["first", "stop at ten", "stop at ten"]);
    await busy.sessions.close();
  });

  it("abort the running turn with interrupt; what was received and every word stays", async () => {
    const script = createScriptedModel({ text: "half an", hangs: true }, "whole");
    const busy = await busySession({ queueMode: "interrupt" }, { script });
    const [second, third] = [busy.session.runTurn("second"), busy.session.runTurn("third")];
    const [first, next, joined] = await Promise.all([busy.first, second, third]);
    expect(first.outcome).toBe("aborted");
    expect(next).toMatchObject({ outcome: "done", text: "whole", joined: false });
    expect(joined).toMatchObject({ turnId: next.turnId, joined: true });
    expect(await users(busy)).toEqual(["first", "second", "third"]);
    await busy.sessions.close();
  });

  it("wait until nothing new came for queueDebounceMs", async () => {
    const clock = createManualClock(1_000_000);
    const busy = await busySession({ queueMode: "collect", queueDebounceMs: 500 }, { clock });
    const second = busy.session.runTurn("second");
    busy.answer();
    await busy.first;
    await settle();
    clock.advance(400);
    const third = busy.session.runTurn("third");
    await settle();
    clock.advance(400);
    await settle();
    expect(busy.model.requests).toHaveLength(1);
    clock.advance(100);
    const turns = await Promise.all([second, third]);
    expect(turns.map(({ joined }) => joined)).toEqual([false, true]);
    expect(busy.model.requests).toHaveLength(2);
    await busy.sessions.close();
  });

  it.each([
    ["new", ["first", "second"], "third"],
    ["old", ["first", "third"], "second"],
  ] as const)("beyond queueCap refuse the %s one, which is not stored", async (queueDrop, stored, refused) => {
    const busy = await busySession({ queueCap: 1, queueDrop });
    const outcomes: Record<string, unknown> = {};
    const waits = ["second", "third"].map(async (text) => {
      try {
        outcomes[text] = (await busy.session.runTurn(text)).outcome;
      } catch (error) {
        outcomes[text] = hasErrorCode(error, "SESSION_BUSY") && error.details["queueCap"];
      }
    });
    busy.answer();
    await Promise.all([busy.first, ...waits]);
    expect(outcomes).toEqual({ second: "done", third: "done", [refused]: 1 });
    expect(await users(busy)).toEqual(stored);
    await busy.sessions.close();
  });

  it("beyond queueCap are a line of the next turn with summarize", async () => {
    const busy = await busySession({ queueCap: 1, queueDrop: "summarize" });
    const long = `second ${"word ".repeat(100)}`;
    const [second, third] = [busy.session.runTurn(long), busy.session.runTurn("third")];
    busy.answer();
    const [, left, next] = await Promise.all([busy.first, second, third]);
    expect(left).toMatchObject({ turnId: next.turnId, joined: true });
    const [, note, words] = await users(busy);
    expect(note).toMatch(/^\[1 earlier message was left out: too many waited\]\n- second word .*…$/);
    expect(String(note).length).toBeLessThan(220);
    expect(words).toBe("third");
    await busy.sessions.close();
  });

  it("are refused, and never hang, when nobody follows who could say what was left out", async () => {
    const busy = await busySession({ queueCap: 1 });
    const controller = new AbortController();
    const second = busy.session.runTurn("second");
    const third = busy.session.runTurn("third", { signal: controller.signal });
    const settled = Promise.allSettled([second, third]);
    controller.abort();
    busy.answer();
    expect((await settled).map((one) => one.status === "rejected" && (one.reason as { code: string }).code)).toEqual([
      "SESSION_BUSY",
      "ABORTED",
    ]);
    await busy.sessions.close();
  });

  it("are waited for as the caller says, whatever the entry says", async () => {
    const busy = await busySession({ queueMode: "interrupt", queueCap: 1 });
    await expect(busy.session.runTurn("second", { whenBusy: "reject" })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    const waiting = ["third", "fourth"].map((text) => busy.session.runTurn(text, { whenBusy: "queue" }));
    busy.answer();
    const turns = await Promise.all([busy.first, ...waiting]);
    expect(turns.map(({ outcome, joined }) => [outcome, joined])).toEqual(Array(3).fill(["done", false]));
    await busy.sessions.close();
  });

  it.each([
    { queueCap: -1, queueDebounceMs: -5 },
    { queueCap: "many", queueDebounceMs: Number.NaN, queueDrop: 7 },
    { queueMode: { toString: "x" }, queueCap: 0.5 },
    { queueMode: "constructor", queueCap: null },
  ])("are queued plainly where another program wrote %j", async (entry) => {
    const busy = await busySession(entry);
    const second = busy.session.runTurn("second");
    busy.answer();
    expect(await second).toMatchObject({ outcome: "done", joined: false });
    await busy.sessions.close();
  });
});
