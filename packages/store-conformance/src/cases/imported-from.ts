import assert from "node:assert/strict";
import type { PurgedSource, PurgesOptions } from "@throughline/core/internal";
import type { ListQuery, SessionPage, SessionStore } from "@throughline/core";
import { assertFails, createSession, nowMs, refOf, reopened, type NewSession } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

type Source = NonNullable<ListQuery["importedFrom"]>;

const source: Source = { format: "claude-code", sourceId: "6F1C-a" };

/** Creates a session whose entry states a source, as an import writes it. */
async function imported(
  store: SessionStore,
  name: string,
  options: NewSession = {},
  { format, sourceId }: Source = source,
): Promise<void> {
  const importedFrom = { format, sessionId: sourceId, path: `/home/${name}.jsonl`, sizeBytes: 1 };
  await createSession(store, name, { ...options, entry: { importedFrom } });
}

function namesOf({ sessions }: SessionPage): string {
  return sessions
    .map(({ sessionId }) => sessionId.replace("session-", ""))
    .toSorted()
    .join("");
}

async function found(store: SessionStore, query: ListQuery = {}): Promise<string> {
  return namesOf(await store.list({ importedFrom: source, ...query }));
}

export const importedFromCases: readonly ConformanceCase[] = [
  {
    id: "imported-from/finds",
    demand: "a list by source has every session of the source, archived ones too, and no other",
    async run({ store }) {
      await imported(store, "a");
      await imported(store, "b");
      await imported(store, "c", {}, { ...source, format: "codex" });
      await imported(store, "d", {}, { ...source, sourceId: "6F1C" });
      await imported(store, "e", {}, { ...source, sourceId: "6f1c-A" });
      await createSession(store, "f");
      await createSession(store, "g", { entry: { importedFrom: "claude-code" } });
      await store.move(refOf("b"), { kind: "archive" });
      assert.equal(await found(store), "abe", "letters of the id compare in any case");
      assert.equal(await found(store, { state: "active" }), "ae");
      assert.equal(await found(store, { state: "archived" }), "b");
      assert.equal(namesOf(await store.list()), "acdefg", "a list without a source is as before");
      assert.equal(await found(store, { importedFrom: { ...source, sourceId: "%" } }), "");
    },
  },
  {
    id: "imported-from/filters",
    demand: "a list by source goes page by page, and the other filters narrow it",
    async run({ store }) {
      for (const name of ["a", "b", "c"]) await imported(store, name);
      await imported(store, "d", { agentId: "other" });
      await imported(store, "e", { namespace: "tenant" });
      await createSession(store, "f");
      const first = await store.list({ importedFrom: source, limit: 2, sort: "key" });
      assert.equal(namesOf(first), "ab");
      const cursor = first.nextCursor ?? "";
      assert.equal(await found(store, { limit: 2, sort: "key", cursor }), "cd");
      await assertFails(store.list({ limit: 2, sort: "key", cursor }), "CURSOR_INVALID");
      assert.equal(await found(store, { agentId: "other" }), "d");
      assert.equal(await found(store, { namespace: "tenant" }), "e");
      assert.equal(await found(store, { keyPrefix: refOf("b").key }), "b");
    },
  },
  {
    id: "imported-from/follows-the-entry",
    demand: "the source is what the entry states now, however it was written",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const stated = { importedFrom: { format: source.format, sessionId: source.sourceId } };
      await store.append(ref, [], { entry: stated });
      assert.equal(await found(store), "a", "an append may state it");
      const state = await store.load(ref);
      await store.save(ref, { sessionId: "session-a" }, { ifRevision: state?.revision ?? null });
      assert.equal(await found(store), "", "an entry without it was saved");
      await store.save(ref, { sessionId: "session-b", ...stated }, { ifRevision: (state?.revision ?? 0) + 1 });
      assert.equal(await found(store), "b", "a reset may state it");
      await store.append(ref, [], { entry: { label: "kept" } });
      assert.equal(await found(store), "b", "a patch of another field leaves it");
      await store.move(ref, { kind: "rename", key: refOf("z").key });
      assert.equal(await found(store), "b");
      await store.append(refOf("z"), [], { entry: { importedFrom: undefined } });
      assert.equal(await found(store), "", "an append may remove it");
    },
  },
  {
    id: "imported-from/redacted-field",
    demand: "a redaction that removes the field of the source removes the session from the list of the source",
    async run({ store }) {
      await imported(store, "a");
      const { records } = await store.append(refOf("a"), [
        { type: "message", message: { role: "user", content: "x" } },
      ]);
      const ids = records.map(({ id }) => id);
      await store.redact(refOf("a"), ids, { reason: "test", entryFields: ["importedFrom"] });
      assert.equal(await found(store), "");
    },
  },
  {
    id: "imported-from/purged",
    demand: "a purge leaves a mark of the source with its time, in its namespace and agent",
    async run({ store }) {
      const markOf = async (query: ListQuery = {}): Promise<number | null | undefined> =>
        (await store.list({ importedFrom: source, ...query })).purgedAtMs;
      await imported(store, "a");
      await imported(store, "b");
      await createSession(store, "c");
      assert.equal(await markOf(), null, "nothing was purged yet");
      assert.equal((await store.list()).purgedAtMs, undefined, "only a list by source has the time");
      await store.remove(refOf("a"));
      await store.remove(refOf("c"), { purge: true });
      assert.equal(await markOf(), null, "an archived session is not purged");
      const before = nowMs();
      await store.remove({ ...refOf("a"), archiveId: "session-a" }, { purge: true });
      const atMs = await markOf();
      assert.ok(typeof atMs === "number" && Math.abs(atMs - before) < 3_600_000, "the mark has the store's time");
      assert.equal(await found(store), "b", "the other session of the source stays");
      assert.equal(await markOf({ agentId: "main", state: "active", untilMs: 0 }), atMs);
      for (const query of [
        { agentId: "other" },
        { namespace: "tenant" },
        { importedFrom: { ...source, format: "codex" } },
      ])
        assert.equal(await markOf(query), null, "the mark is of one namespace, agent and source");
      assert.equal(await markOf({ keyPrefix: "agent:" }), undefined, "the mark has no key");
      await imported(store, "a");
      assert.equal(await markOf(), atMs, "a new session of the source leaves the mark");
      assert.equal(await found(store), "ab");
    },
  },
  {
    id: "imported-from/carried",
    demand: "a store that lists the marks of purges takes those of another store, and keeps the later of two times",
    requires: ({ maintenance }) => maintenance,
    async run({ store: { maintenance }, store }) {
      const { purges, addPurges } = maintenance ?? assert.fail("declared and not there");
      if (purges === undefined || addPurges === undefined) return assert.equal(purges, addPurges, "both or none");
      const marksOf = async (query: PurgesOptions): Promise<readonly PurgedSource[]> =>
        (await Array.fromAsync(purges(query))).flat();
      const timeOf = async (namespace: string): Promise<number | null | undefined> =>
        (await store.list({ namespace, importedFrom: source })).purgedAtMs;
      await imported(store, "a");
      await imported(store, "b", { agentId: "other" }, { ...source, sourceId: "b" });
      await store.remove(refOf("a"), { purge: true });
      await store.remove(refOf("b", { agentId: "other" }), { purge: true });
      const atMs = (await timeOf("")) ?? assert.fail("the purge has a time");
      const [mark = assert.fail("the mark is listed"), ...others] = await marksOf({ agentId: "main" });
      assert.deepEqual([mark.agentId, mark.purgedAtMs, others], ["main", atMs, []]);
      assert.equal((await marksOf({})).length, 2);
      for (const [given, kept] of [
        [atMs, atMs],
        [atMs - 1, atMs],
        [atMs + 1, atMs + 1],
      ] as const) {
        await addPurges("tenant", [{ ...mark, purgedAtMs: given }]);
        assert.equal(await timeOf("tenant"), kept);
      }
      assert.deepEqual(await marksOf({ namespace: "tenant" }), [{ ...mark, purgedAtMs: atMs + 1 }]);
      assert.equal(await timeOf(""), atMs, "the other namespace is as before");
      assert.equal((await marksOf({ namespace: undefined } as object)).length, 2, "undefined counts as absent");
      for (const wrong of [{ digest: "x" }, { purgedAtMs: Number.NaN }])
        await assertFails(addPurges("tenant", [{ ...mark, ...wrong }]), "INPUT_INVALID");
    },
  },
  {
    id: "imported-from/reopened",
    demand: "sources and marks of purged sources are there when the store is opened again",
    needs: ["reopen"],
    async run({ under, store }) {
      await imported(store, "a");
      await imported(store, "b");
      await store.remove(refOf("a"), { purge: true });
      const { purgedAtMs } = await store.list({ importedFrom: source });
      const later = await reopened(under);
      assert.equal(await found(later), "b");
      assert.equal((await later.list({ importedFrom: source })).purgedAtMs, purgedAtMs);
      assert.ok(typeof purgedAtMs === "number", "the mark is there");
    },
  },
];
