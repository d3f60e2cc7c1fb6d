import { describe, expect, it } from "vitest";
import { openSession, type SessionEntry, type SessionStore } from "@throughline/core";
import { patchEntry } from "../src/session-entry.ts";
import { resetSession, updateEntry } from "../src/open-session.ts";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";

const ref = { namespace: "", agentId: "main", key: "agent:main:cli:direct:bounds" };
const many = (count: number, value: unknown = 1): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, value]));
const refusal = { code: "INPUT_INVALID", outcome: "not-applied" };
const ofMembers = { ...refusal, details: { of: "members", limit: 1000 } };
const ofBytes = { ...refusal, details: { of: "bytes", limit: 1024 * 1024 } };

async function begun(): Promise<SessionStore> {
  const store = createMemoryStore();
  await openSession(store, ref);
  return store;
}

describe("an entry", () => {
  it.each([
    ["members", many(1001), ofMembers],
    ["members of values", { nested: [many(600), { deep: many(600), more: { other: 1 } }, many(1001)] }, ofMembers],
    ["bytes", { text: "x".repeat(1024 * 1024) }, ofBytes],
    ["bytes of many letters", { text: "ü".repeat(600_000) }, ofBytes],
  ])("is refused with too many %s, however it is written", async (_what, fields, expected) => {
    const store = await begun();
    const { revision } = (await store.load(ref)) ?? { revision: 0 };
    const writes = [
      () => openSession(store, { ...ref, key: "agent:main:cli:direct:new" }, { entry: fields }),
      () => updateEntry(store, ref, (entry) => patchEntry(entry, fields)),
      () => store.append(ref, [], { entry: fields }),
      () => store.save(ref, { sessionId: "other", ...fields }, { ifRevision: revision }),
    ];
    for (const write of writes) await expect(write()).rejects.toMatchObject(expected);
    expect(Object.keys((await store.load(ref))?.entry ?? {})).toEqual(["sessionId"]);
  });

  it("is refused once many small appends together have too much", async () => {
    const store = await begun();
    await store.append(ref, [], { entry: many(900) });
    await expect(store.append(ref, [], { entry: { ...many(1000) } })).rejects.toMatchObject(ofMembers);
    await store.append(ref, [], { entry: { last: 1 } });
    expect(Object.keys((await store.load(ref))?.entry ?? {})).toHaveLength(902);
  });

  it("may have many values with the same members", async () => {
    const store = await begun();
    const fields = { list: Array.from({ length: 5000 }, (_, index) => ({ name: `skill ${index}`, path: "/x" })) };
    await store.append(ref, [], { entry: fields });
    expect((await store.load(ref))?.entry["list"]).toEqual(fields.list);
  });

  it("that another program made too large can be changed, and made smaller", () => {
    const foreign = { sessionId: "s", ...many(2000) } as SessionEntry;
    const patched = patchEntry(foreign, { label: "x", field0: undefined });
    expect([Object.keys(patched).length, patched.label, patched["field0"]]).toEqual([2001, "x", undefined]);
  });

  it("that another program made too large is reset and changed, and never grows", async () => {
    const data = createMemoryData();
    const store = createMemoryStore({ data });
    for (const [name, fields] of [
      ["members", many(2000)],
      ["bytes", { text: "x".repeat(2 * 1024 * 1024) }],
    ] as const) {
      const at = { ...ref, key: `${ref.key}:${name}` };
      const { state } = await openSession(store, at);
      const foreign = { ...state.entry, ...fields };
      for (const session of data.sessions.values())
        if (session.row.ref.key === at.key) session.entry = JSON.stringify(foreign);
      const renamed = await updateEntry(store, at, (entry) => ({ ...entry, ...fields, sessionId: entry.sessionId }));
      expect(renamed.entry).toEqual(foreign);
      const larger = updateEntry(store, at, (entry) => ({ ...entry, larger: "x" }));
      await expect(larger).rejects.toMatchObject(refusal);
      const growing = resetSession(store, at, { keep: (entry) => ({ ...entry, larger: "x" }) });
      await expect(growing).rejects.toMatchObject(refusal);
      const reset = await resetSession(store, at, { keep: (entry) => entry });
      expect(reset.entry).toEqual({
        ...foreign,
        sessionId: reset.sessionId,
        previousSessionIds: [state.sessionId],
      });
      await expect(store.save(at, reset.entry, { ifRevision: reset.revision })).rejects.toMatchObject(refusal);
    }
  });

  it("keeps the order of its fields and __proto__ when it is patched", () => {
    const entry = JSON.parse('{"sessionId":"s","a":1,"__proto__":{"x":1},"b":2}') as SessionEntry;
    const patched = patchEntry(entry, JSON.parse('{"a":3,"__proto__":{"y":1},"c":4}') as Record<string, unknown>);
    expect(JSON.stringify(patched)).toBe('{"sessionId":"s","a":3,"__proto__":{"y":1},"b":2,"c":4}');
    expect(() => patchEntry(entry, { a: 1n })).toThrow("not JSON");
  });
});
