import { assistantMessage, sessionRef, userMessage, type SessionStore, type StoredRecord } from "@throughline/core";
import { openTurn } from "@throughline/session";
import { describe, expect, it } from "vitest";
import { aroundCalls, replaceMembers } from "@throughline/test-kit";
import { places } from "./whole-turn-fixture.ts";

const ref = sessionRef({ key: "agent:main:cli:direct:loop" });

/** A store that counts what it is asked. */
function counting(inner: SessionStore): { readonly store: SessionStore; readonly calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const store = aroundCalls(inner, ({ name, run }) => {
    calls.set(name, (calls.get(name) ?? 0) + 1);
    return run();
  });
  return { store, calls };
}

/** A store of a time in which an append gave no records. */
function withoutRecords(inner: SessionStore): SessionStore {
  return replaceMembers(inner, {
    append: (address, drafts, { return: _return, ...options } = {}) => inner.append(address, drafts, options),
  });
}

async function readAll(store: SessionStore): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return records;
}

const steps = 10;

async function runLoop(store: SessionStore, between: () => void): Promise<readonly StoredRecord[]> {
  const turn = await openTurn(store, ref, { drafts: [userMessage("Count \u2028 slowly")] });
  between();
  const given: StoredRecord[] = [...turn.records];
  for (let step = 1; step <= steps; step++) given.push(...(await turn.append([assistantMessage(`${step}`)])));
  given.push(...(await turn.close([assistantMessage("Done.")])));
  return given.filter(({ type }) => type === "message");
}

describe.each(places)("what a turn appended, over $name", ({ open }) => {
  it("is given as it is stored, without a read", async () => {
    const { store: inner, remove } = open();
    const { store, calls } = counting(inner);
    const given = await runLoop(store, () => calls.clear());
    expect(Object.fromEntries(calls)).toEqual({ append: steps + 1 });
    const stored = await readAll(inner);
    expect(given).toEqual(stored.filter(({ type }) => type === "message"));
    expect(given.every(({ bytes, crc }) => bytes > 0 && crc !== null)).toBe(true);
    await remove();
  });

  it("is read from a store that does not give it", async () => {
    const { store: inner, remove } = open();
    const given = await runLoop(withoutRecords(inner), () => undefined);
    expect(given).toEqual((await readAll(inner)).filter(({ type }) => type === "message"));
    await remove();
  });
});
