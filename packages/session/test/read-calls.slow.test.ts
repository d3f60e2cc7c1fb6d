import { sessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { explainCalls, readCalls } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";

const ref = sessionRef({ key: "agent:main:calls" });

function callDraft(turnId: string, step: number, resultOf: string | null): ReturnType<typeof throughlineDraft> {
  const change = { recordId: null, callId: resultOf, what: "result", reason: "size", beforeBytes: 9, afterBytes: 1 };
  return throughlineDraft("call", {
    part: 1,
    turnId,
    step,
    attempt: 0,
    provider: "p",
    api: "a",
    model: "m",
    fromSeq: 1,
    toSeq: 2,
    headId: null,
    summaryId: null,
    messageCount: 1,
    systemHash: null,
    toolsHash: null,
    estimatedTokens: 1,
    maxOutputTokens: null,
    windowTokens: null,
    outcome: "answered",
    actual: null,
    changes: resultOf === null ? [] : [change],
    thinkingOut: null,
    splice: null,
  });
}

async function filled(): Promise<{ readonly store: SessionStore; readonly records: readonly StoredRecord[] }> {
  const store = createMemoryStore();
  await store.save(ref, { sessionId: "calls" }, { ifRevision: null });
  for (let turn = 0; turn < 1500; turn++) {
    const result = { role: "toolResult", toolCallId: `c${turn}`, toolName: "t", content: "x", isError: false };
    await store.append(ref, [
      { type: "message", message: { role: "user", content: `turn ${turn}` } },
      { type: "message", message: result },
      callDraft(`t${turn}`, 1, turn % 3 === 0 ? `c${turn}` : null),
      callDraft(`t${turn}`, 2, turn % 5 === 0 ? "never" : null),
    ]);
  }
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return { store, records };
}

describe("the calls of a session", () => {
  it("are those of the whole log, by turn and from the end", async () => {
    const { store, records } = await filled();
    const all = explainCalls(records);
    expect(all.length).toBe(3000);
    expect((await readCalls(store, ref, {})).shown).toEqual(all);
    for (const tail of [1, 2, 7, 2000, 5000])
      expect((await readCalls(store, ref, { tail })).shown).toEqual(all.slice(-tail));
    for (const turn of ["t0", "t999", "t1499", "none"]) {
      const expected = all.filter(({ turnId }) => turnId === turn);
      expect(await readCalls(store, ref, { turn })).toEqual({ shown: expected, hasCalls: true });
      expect((await readCalls(store, ref, { turn, tail: 1 })).shown).toEqual(expected.slice(-1));
    }
  });
});
