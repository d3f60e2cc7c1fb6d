import { type Clock, sessionRef, type StoredRecord } from "@throughline/core";
import { systemClock, throughlineDraft } from "@throughline/core/internal";
import { createSessions, explainCalls, readCalls } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { readCallPart } from "../src/call-record.ts";
import { createScriptedModel } from "./scripted-model.ts";

const start = Date.UTC(2026, 10, 1);
const ref = sessionRef({ key: "agent:main:timed" });

/** Runs one turn whose model takes 1.9 s, and streams its first text after 0.4 s. */
async function timedCall(isStreamed: boolean): Promise<readonly StoredRecord[]> {
  let nowMs = start;
  const clock: Clock = { ...systemClock, nowMs: () => nowMs };
  const chat = createScriptedModel((request) => {
    nowMs += 400;
    request.onDelta?.({ type: "text", text: "Hello" });
    nowMs += 1500;
    return { text: " there" };
  });
  const store = createMemoryStore();
  const sessions = createSessions({ store, model: { chat, modelId: "scripted" }, clock });
  const session = await sessions.open(ref.key);
  await session.runTurn("Go", isStreamed ? { onDelta: () => {} } : {});
  await sessions.close();
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return records;
}

describe("the times of a call", () => {
  it("are those of its request, its first text and its end", async () => {
    const [streamed] = explainCalls(await timedCall(true));
    expect(streamed).toMatchObject({ startedMs: start, firstByteMs: start + 400, endedMs: start + 1900 });
    expect(streamed?.facts).toMatchObject({ startedMs: start, durationMs: 1900, firstTextMs: 400 });
    const [whole] = explainCalls(await timedCall(false));
    expect(whole).toMatchObject({ startedMs: start, firstByteMs: null, endedMs: start + 1900 });
  });

  it("are unknown in records of earlier versions, and in those that somebody forged", async () => {
    const records = await timedCall(true);
    const { record } = records.find((stored) => readCallPart(stored.record) !== null) as StoredRecord;
    const none = { startedMs: null, durationMs: null, firstTextMs: null };
    for (const time of [undefined, 5, [], [start], [start, -1], ["x", 2], [start, 1.5], [start, null]]) {
      const part = readCallPart({ ...record, data: { ...(record["data"] as object), time } });
      expect(part?.part === 1 && part.call).toMatchObject(none);
    }
  });

  it("are those of the exchange for a call through a gateway, wherever a page of the store ends", async () => {
    const store = createMemoryStore();
    await store.save(ref, { sessionId: "timed" }, { ifRevision: null });
    const facts = { step: 1, provider: "p", model: "m", toSeq: 1, outcome: "answered" };
    const calls = 600;
    const drafts = Array.from({ length: calls }, (_, at) => {
      const times = { startedMs: start + at, firstByteMs: start + at + 1, endedMs: start + at + 2 };
      const frame = ["x".repeat(1000)];
      return [
        // Each third call has one record more, so that a page ends between an exchange and its call.
        ...(at % 3 === 0 ? [{ type: "message" as const, message: { role: "user", content: "x" } }] : []),
        { ...throughlineDraft("exchange", { ...times, frame }), id: `x-${at}` },
        { ...throughlineDraft("call", { ...facts, turnId: `t${at}`, exchangeId: `x-${at}` }), id: `c-${at}` },
      ];
    }).flat();
    for (let at = 0; at < drafts.length; at += 200) await store.append(ref, drafts.slice(at, at + 200));
    const kept: StoredRecord[] = [];
    const { shown } = await readCalls(store, ref, {}, { onKeep: (records) => void kept.push(...records) });
    expect(shown.map(({ startedMs }) => startedMs)).toEqual(Array.from({ length: calls }, (_, at) => start + at));
    expect(shown.at(-1)).toMatchObject({ firstByteMs: start + calls, endedMs: start + calls + 1 });
    expect(JSON.stringify(kept)).not.toContain("xxxx");
    for (const query of [{ tail: 1 }, { turn: `t${calls - 1}` }, { tail: 1, beforeSeq: 100_000 }])
      expect((await readCalls(store, ref, query)).shown.map(({ endedMs }) => endedMs)).toEqual([start + calls + 1]);
  });
});
