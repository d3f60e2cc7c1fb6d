import assert from "node:assert/strict";
import { hasErrorCode, type SessionRef, type SessionStore } from "@throughline/core";
import { assertFails, createSession, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

type Work = readonly [name: string, run: () => Promise<unknown>];

async function firstOf(results: AsyncIterable<unknown>): Promise<unknown> {
  return results[Symbol.asyncIterator]().next();
}

function worksOf(store: SessionStore, ref: SessionRef): readonly Work[] {
  const { search, watch, fork, maintenance } = store;
  const lock = { timeoutMs: 0, pollIntervalMs: 1 };
  const { signal } = new AbortController();
  const works: readonly (Work | null)[] = [
    ["append", async () => store.append(ref, [userDraft("more")])],
    ["read", async () => firstOf(store.read(ref))],
    store.readWindow === undefined ? null : ["readWindow", async () => store.readWindow?.(ref)],
    ["load", async () => store.load(ref)],
    ["save", async () => store.save(refOf("new"), { sessionId: "session-new" }, { ifRevision: null })],
    ["list", async () => store.list()],
    store.entriesMark === undefined ? null : ["entriesMark", async () => store.entriesMark?.({})],
    store.exclusively === undefined
      ? null
      : ["exclusively", async () => store.exclusively?.({}, () => Promise.resolve(), lock)],
    ["move", async () => store.move(ref, { kind: "rename", key: ref.key })],
    ["redact", async () => store.redact(ref, ["r1"], { reason: "test" })],
    search === undefined ? null : ["search", async () => firstOf(search.search({ text: "one" }))],
    search === undefined ? null : ["search.lag", async () => search.lag()],
    search?.rebuild === undefined ? null : ["search.rebuild", async () => search.rebuild?.()],
    search?.fill === undefined ? null : ["search.fill", async () => firstOf(search.fill?.() ?? none())],
    watch === undefined ? null : ["watch", async () => firstOf(watch.watch(ref, { afterSeq: 0, signal }))],
    fork === undefined ? null : ["fork", async () => fork.fork(ref, refOf("fork"), { sessionId: "session-fork" })],
    fork?.sharers === undefined ? null : ["fork.sharers", async () => fork.sharers?.(ref, [1])],
    maintenance === undefined ? null : ["verify", async () => firstOf(maintenance.verify({ full: true }))],
    maintenance === undefined ? null : ["repair", async () => firstOf(maintenance.repair())],
    maintenance?.rebuild === undefined ? null : ["rebuild", async () => firstOf(maintenance.rebuild?.() ?? none())],
    maintenance === undefined ? null : ["backup", async () => maintenance.backup("/nowhere/at all")],
    ["remove", async () => store.remove(ref)],
  ];
  return works.filter((work) => work !== null);
}

async function* none(): AsyncGenerator<never> {}

/** Creates a session with enough records for several pages of a read in any store. */
async function filled(store: SessionStore): Promise<SessionRef> {
  const ref = await createSession(store, "a");
  const { pageRecords, batchRecords } = store.capabilities.limits;
  await store.append(ref, [userDraft("one", { id: "r1" })]);
  for (let left = pageRecords * 2; left > 0; left -= batchRecords) {
    const count = Math.min(left, batchRecords);
    await store.append(
      ref,
      Array.from({ length: count }, () => userDraft("one of many")),
    );
  }
  return ref;
}

export const closedCases: readonly ConformanceCase[] = [
  {
    id: "lifecycle/closed-everywhere",
    demand: "every method of a closed handle and of its facets fails with STORE_CLOSED",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const works = worksOf(store, ref);
      await store.close();
      for (const [name, run] of works) {
        const error = await assertFails(run(), "STORE_CLOSED");
        assert.equal(error.outcome, "not-applied", `${name} says that nothing was done`);
      }
    },
  },
  {
    id: "lifecycle/closed-between-pages",
    demand: "what is read or watched when the handle is closed ends in STORE_CLOSED with its next step",
    withoutCodec: true,
    async run({ store }) {
      const ref = await filled(store);
      const { signal } = new AbortController();
      const begun = [
        store.read(ref),
        ...(store.watch === undefined ? [] : [store.watch.watch(ref, { afterSeq: 0, signal })]),
      ].map((results) => (results as AsyncIterable<unknown>)[Symbol.asyncIterator]());
      for (const iterator of begun) assert.equal((await iterator.next()).done, false);
      await store.close();
      for (const iterator of begun) await assertFails(restOf(iterator), "STORE_CLOSED");
    },
  },
  {
    id: "lifecycle/closed-in-the-middle",
    demand: "work that is under way when the handle is closed is done or fails with STORE_CLOSED, and never hangs",
    needs: ["reopen"],
    withoutCodec: true,
    async run({ store, under }) {
      const ref = await filled(store);
      const works = worksOf(store, ref).filter(([name]) => name !== "backup");
      const before = (await store.load(ref))?.head.lastSeq ?? 0;
      const running = works.map(async ([name, run]) => {
        try {
          await run();
          return [name, "done"] as const;
        } catch (error) {
          // The calls run at once, so each may also fail because of another: a taken lock, or a session that was just
          // archived.
          const isRefused = hasErrorCode(
            error,
            "STORE_CLOSED",
            "STORE_LOCKED",
            "SESSION_NOT_FOUND",
            "SESSION_ARCHIVED",
          );
          assert.ok(isRefused || hasErrorCode(error, "REVISION_CONFLICT", "SESSION_BUSY"), `${name}: ${String(error)}`);
          return [name, "refused"] as const;
        }
      });
      await store.close();
      const outcomes = new Map(await Promise.all(running));
      const again = await under.reopen?.();
      const at = outcomes.get("remove") === "done" ? { ...ref, archiveId: "session-a" } : ref;
      const lastSeq = (await again?.load(at))?.head.lastSeq;
      assert.equal(lastSeq, outcomes.get("append") === "done" ? before + 1 : before, "an append is done or is not");
    },
  },
];

async function restOf(iterator: AsyncIterator<unknown>): Promise<void> {
  for (;;) if ((await iterator.next()).done === true) return;
}
