import assert from "node:assert/strict";
import { hasErrorCode } from "../../packages/core/src/index.ts";
import type { ErrorCode, SessionRef } from "../../packages/core/src/index.ts";
import type { Scenario } from "./scenario.ts";
import type { SpikeStore } from "./spike-store.ts";

/** Creating, changing, resetting and paging, alone and against one another. */
export const sessionScenario: Scenario = async ({ stores, quick, createSession }) => {
  const [first, second] = stores;
  assert(first !== undefined && second !== undefined);
  return [
    await creates(stores),
    await changes(first, await createSession()),
    await resetsUnderWriters(first, stores.slice(1), await createSession(), quick ? 10 : 100),
    await pages(first, second, await createSession(), quick ? 1200 : 6000),
  ];
};

function refusedWith(code: ErrorCode): (error: unknown) => boolean {
  return (error) => hasErrorCode(error, code);
}

async function creates(stores: readonly SpikeStore[]): Promise<string> {
  const ref: SessionRef = { namespace: "", agentId: "creator", key: "agent:creator:main" };
  const outcomes = await Promise.allSettled(
    stores.map((store, index) => store.save(ref, { sessionId: `created-${index}` }, { ifRevision: null })),
  );
  const reasons = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  assert.equal(reasons.length, stores.length - 1);
  assert(reasons.every(refusedWith("REVISION_CONFLICT")));
  const [store] = stores;
  assert(store !== undefined);
  const winner = (await store.load(ref))?.sessionId ?? "";
  const other = { ...ref, key: "agent:creator:other" };
  const create = (sessionId: string): Promise<unknown> => store.save(other, { sessionId }, { ifRevision: null });
  await assert.rejects(create(winner), refusedWith("SESSION_EXISTS"));
  await assert.rejects(create(winner.toUpperCase()), refusedWith("ID_CASE_COLLISION"));
  await assert.rejects(store.append(other, [{ type: "message" }]), refusedWith("SESSION_NOT_FOUND"));
  return `${stores.length} clients create one key at once: one wins; an id in use, or one that differs by case, is refused`;
}

async function changes(store: SpikeStore, ref: SessionRef): Promise<string> {
  const before = await store.load(ref);
  assert(before !== null);
  const entry = {
    sessionId: before.sessionId,
    ["2"]: 1.5,
    "a\u0000\ud800": "\u0000\ud800",
    ["__proto__"]: null,
    nested: { a: [1] },
  };
  const saved = await store.save(ref, entry, { ifRevision: before.revision });
  assert.equal(JSON.stringify(saved.entry), JSON.stringify(entry));
  assert.deepEqual(await store.load(ref), saved);
  await assert.rejects(store.save(ref, entry, { ifRevision: before.revision }), refusedWith("REVISION_CONFLICT"));
  const ahead = await store.save(ref, { ...entry, updatedAt: Date.now() + 86_400_000 }, { ifRevision: saved.revision });
  assert(ahead.updatedAtMs < Date.now() + 60_000, "a time far ahead is not believed");
  return "save compares and swaps; NUL, lone surrogates and __proto__ in names and values of an entry come back as they went in";
}

/** A reset gives the key another session while others append to it: nobody may be told that there is no session. */
async function resetsUnderWriters(
  resetter: SpikeStore,
  writers: readonly SpikeStore[],
  ref: SessionRef,
  resets: number,
): Promise<string> {
  let resetting = true;
  const perSession = new Map<string, number>();
  const write = async (store: SpikeStore): Promise<void> => {
    while (resetting) {
      const { head } = await store.append(ref, [{ type: "message" }]);
      perSession.set(head.sessionId, (perSession.get(head.sessionId) ?? 0) + 1);
    }
  };
  const archived: string[] = [];
  const reset = async (): Promise<void> => {
    try {
      for (let number = 0; number < resets; number++) {
        const state = await resetter.load(ref);
        assert(state !== null);
        archived.push(state.sessionId);
        const next = await resetter.save(
          ref,
          { sessionId: `${state.sessionId}-${number}` },
          { ifRevision: state.revision },
        );
        assert.equal(next.head.lastSeq, 0);
      }
    } finally {
      resetting = false;
    }
  };
  await Promise.all([reset(), ...writers.map(write)]);
  let records = 0;
  for (const archiveId of archived) {
    const state = await resetter.load({ ...ref, archiveId });
    assert(state?.archived === true);
    assert.equal(state.head.lastSeq, perSession.get(archiveId) ?? 0);
    records += state.head.lastSeq;
    await assert.rejects(
      resetter.append({ ...ref, archiveId }, [{ type: "message" }]),
      refusedWith("SESSION_ARCHIVED"),
    );
  }
  return `${resets} resets while ${writers.length} clients append: no append fails, and each of the ${records} archived records is in the session that took it`;
}

async function pages(reader: SpikeStore, writer: SpikeStore, ref: SessionRef, count: number): Promise<string> {
  let isWriting = true;
  const write = async (): Promise<void> => {
    try {
      for (let written = 0; written < count; written += 200) {
        await writer.append(
          ref,
          Array.from({ length: 200 }, (_, index) => ({ type: "message", text: "x".repeat(index) })),
        );
      }
    } finally {
      isWriting = false;
    }
  };
  let pagesSeen = 0;
  let lastSeen = 0;
  const read = async (): Promise<void> => {
    while (lastSeen < count) {
      // Asked before the page is read: a writer that failed must not leave the reader waiting for ever.
      const isLastTry = !isWriting;
      for await (const page of reader.read(ref, { payload: "source", afterSeq: lastSeen, pageBytes: 20_000 })) {
        pagesSeen += 1;
        for (const record of page.records) assert.equal(record.seq, ++lastSeen);
        assert(page.lastSeq >= lastSeen);
        const bytes = page.records.slice(0, -1).reduce((sum, record) => sum + record.bytes, 0);
        assert(bytes < 20_000, "a page ends when it has reached its bytes");
      }
      assert(!isLastTry || lastSeen === count);
    }
  };
  await Promise.all([write(), read()]);
  const last: number[] = [];
  for await (const page of reader.read(ref, { payload: "source", order: "descending", limit: 7, beforeSeq: count })) {
    last.push(...page.records.map((record) => record.seq));
  }
  assert.deepEqual(
    last,
    Array.from({ length: 7 }, (_, index) => count - 1 - index),
  );
  return `${count} records read while they are written: ${pagesSeen} pages of at most 20,000 bytes, no gap, lastSeq never behind its page`;
}
