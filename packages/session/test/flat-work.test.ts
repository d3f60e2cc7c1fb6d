import { describe, expect, it } from "vitest";
import type { SessionDraft } from "@throughline/core/internal";
import type { SessionStore } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createTokenEstimator } from "@throughline/tokens";
import type { Session } from "@throughline/session";
import { aroundCalls } from "@throughline/test-kit";
import type { SessionHandle } from "../src/session-handle.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, modelId } from "./session-fixture.ts";

interface Work {
  readonly appends: number;
  readonly appendedBytes: number;
  readonly loads: number;
  readonly pages: number;
  readonly recordsTaken: number;
  readonly recordsRead: number;
  readonly messagesCleaned: number;
  readonly itemsPaired: number;
  readonly turnsMapped: number;
  readonly countedSlices: number;
  readonly cacheHits: number;
}

/** A store that counts what is asked of it. */
function counted(store: SessionStore): { readonly store: SessionStore; readonly counts: Record<string, number> } {
  const counts: Record<string, number> = { append: 0, load: 0, read: 0, bytes: 0 };
  const add = (name: string, more: number): void => void (counts[name] = (counts[name] ?? 0) + more);
  const counting = aroundCalls(store, ({ name, args, run }) => {
    if (name in counts) add(name, 1);
    if (name === "append") add("bytes", JSON.stringify(args[1]).length);
    const result = run();
    if (name !== "read") return result;
    return (async function* () {
      for await (const page of result as AsyncIterable<unknown>) {
        add("page", 1);
        yield page;
      }
    })();
  });
  return { store: counting, counts };
}

function filler(from: number, count: number): SessionDraft[] {
  return Array.from({ length: count }, (_, index) => {
    const at = from + index;
    const content = [{ type: "text", text: `${at} ${"some words ".repeat(10)}` }];
    const reply = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5", stopReason: "stop" };
    return {
      type: "message",
      message: at % 2 === 0 ? { role: "user", content } : { role: "assistant", content, ...reply },
    };
  });
}

async function fill(session: Session, messages: number): Promise<void> {
  for (let from = 0; from < messages; from += 500) await session.append(filler(from, Math.min(500, messages - from)));
}

async function workOfTurns(messages: number): Promise<Work> {
  const { store, counts } = counted(createMemoryStore());
  const estimator = createTokenEstimator();
  const script = createScriptedModel();
  const model = { chat: script, modelId, windowTokens: 10_000_000 };
  const { sessions } = createFixture({ model, store, estimator, warnAtPercents: [50, 90] });
  await using session = await sessions.open(key);
  await fill(session, messages);
  const turn = async (at: number): Promise<void> => {
    // A measured size that grows as the conversation does.
    const usage = { input: 1000 + at * 30, output: 10, cacheRead: 0, cacheWrite: 0 };
    script.push(
      { text: "I look.", calls: [{ id: `call ${at}`, name: "echo", arguments: { text: `x${at}` } }], usage },
      { text: "Seen.", usage },
    );
    await session.runTurn(`Turn ${at}`);
  };
  await turn(0);
  await turn(1);
  const { log } = session as SessionHandle;
  const now = (): Work => ({
    appends: counts["append"] ?? 0,
    appendedBytes: counts["bytes"] ?? 0,
    loads: counts["load"] ?? 0,
    pages: counts["page"] ?? 0,
    recordsTaken: log.work.recordsTaken,
    recordsRead: log.history.work.recordsRead,
    messagesCleaned: log.history.work.messagesCleaned,
    itemsPaired: log.history.work.itemsPaired,
    turnsMapped: log.history.work.turnsMapped,
    countedSlices: estimator.work.slices,
    cacheHits: estimator.work.cacheHits,
  });
  const before = now();
  for (let at = 2; at < 7; at++) await turn(at);
  const after = now();
  return Object.fromEntries(
    Object.entries(after).map(([name, value]) => [name, value - before[name as keyof Work]]),
  ) as unknown as Work;
}

describe("what a turn costs", () => {
  it("is the same after 10, 1,000 and 10,000 messages, by every count", { tags: ["slow"] }, async () => {
    const [short, long, longest] = [await workOfTurns(10), await workOfTurns(1000), await workOfTurns(10_000)];
    // Numbers with more digits make records a little longer.
    expect(longest.appendedBytes / short.appendedBytes).toBeLessThan(1.03);
    expect({ ...long, appendedBytes: 0 }).toEqual({ ...short, appendedBytes: 0 });
    expect({ ...longest, appendedBytes: 0 }).toEqual({ ...short, appendedBytes: 0 });
    // One commit for each step: the words, the reply with its call, the result, the last reply.
    // One load for each call of the model: the entry's send policy.
    expect(short).toMatchObject({ appends: 20, loads: 10, pages: 0, recordsTaken: 40 });
  });

  it("opening reads the window alone, however long the session is", async () => {
    const pagesOf = async (messages: number): Promise<unknown> => {
      const data = createMemoryData();
      {
        const { sessions, store } = createFixture({ store: createMemoryStore({ data }) });
        await using session = await sessions.open(key);
        await fill(session, messages);
        const firstKept = await store.append(session.ref, filler(0, 1));
        const [kept] = firstKept.records;
        const summary = { type: "compaction", summary: "So far.", firstKeptEntryId: kept?.id, tokensBefore: 9 };
        await store.append(session.ref, [summary], { windowFromSeq: kept?.seq ?? 1 });
      }
      const { store, counts } = counted(createMemoryStore({ data }));
      const { sessions } = createFixture({ store });
      await using session = await sessions.open(key);
      return { ...counts, ...(session as SessionHandle).log.work, turns: session.restored.turns };
    };
    const short = await pagesOf(10);
    expect(await pagesOf(10_000)).toEqual(short);
    expect(short).toMatchObject({ page: 1, recordsTaken: 2, turns: 1 });
  });
});
