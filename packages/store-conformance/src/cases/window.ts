import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, readWindow, type SessionStore } from "@throughline/core";
import type { RecordWindow } from "@throughline/core/internal";
import {
  abilityOf,
  assertFails,
  createSession,
  noteDraft,
  numbersTo,
  readRecords,
  refOf,
  seqsOf,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

/** The case reads this many windows during concurrent writes, to make a race likely. */
const races = 30;

function textsOf({ records }: RecordWindow): unknown[] {
  return records.map(({ record }) => (record["message"] as { readonly content?: unknown } | undefined)?.content);
}

/** Asserts that the window has every record of the state in order, and that the head is one of them. */
function assertWhole({ state, records }: RecordWindow, fromSeq: number): void {
  assert.deepEqual(
    seqsOf(records),
    numbersTo(records.length).map((number) => number + fromSeq - 1),
    "no gap",
  );
  assert.ok((records.at(-1)?.seq ?? 0) >= state.head.lastSeq, "nothing of the state is missing");
  assert.ok(
    records.some(({ id }) => id === state.head.headId),
    "the head is in the window",
  );
}

/** Creates a session in which every record's text is the session id, so that mixed windows show. */
async function longSession(store: SessionStore, name: string, count: number): Promise<void> {
  const ref = await createSession(store, name);
  const sessionId = (await store.load(ref))?.sessionId ?? "";
  const { batchRecords } = store.capabilities.limits;
  for (let from = 0; from < count; from += batchRecords)
    await store.append(
      ref,
      numbersTo(Math.min(batchRecords, count - from)).map(() => userDraft(sessionId)),
      { windowFromSeq: 1 },
    );
}

export const windowCases: readonly ConformanceCase[] = [
  {
    id: "window/stated",
    demand: "a window begins with the seq its last writer stated, and comes with the state",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "mine" } });
      await store.append(ref, [userDraft("one"), userDraft("two"), userDraft("three")], { windowFromSeq: 2 });
      await store.append(ref, [noteDraft("aside"), userDraft("four")]);
      const window = await readWindow(store, ref);
      assert.deepEqual(window.state, await store.load(ref));
      assert.deepEqual(window.records, (await readRecords(store, ref)).slice(1));
    },
  },
  {
    id: "window/whole",
    demand: "without a stated boundary and without a compaction a window is the whole session",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), noteDraft("aside"), userDraft("two")]);
      assert.deepEqual((await readWindow(store, ref)).records, await readRecords(store, ref));
    },
  },
  {
    id: "window/empty",
    demand: "the window of a session without records is empty",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { state, records } = await readWindow(store, ref);
      assert.deepEqual([state.head.lastSeq, records], [0, []]);
    },
  },
  {
    id: "window/compacted",
    demand: "without a stated boundary a window has at least what the newest compaction keeps",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const compaction = { type: "compaction", summary: "s", firstKeptEntryId: "r2", tokensBefore: 9 };
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" }), compaction]);
      const { records } = await readWindow(store, ref);
      assert.deepEqual(records, (await readRecords(store, ref)).slice(-records.length));
      assert.ok(records.length >= 2);
    },
  },
  {
    id: "window/settings",
    demand: "without a stated boundary a window has what set the model and thinking level before its compaction",
    async run({ store }) {
      const { pageRecords, batchRecords } = store.capabilities.limits;
      const set = [
        { type: "thinking_level_change", id: "level", thinkingLevel: "high" },
        { type: "model_change", id: "model", provider: "p", modelId: "m1" },
      ];
      const compaction = { type: "compaction", id: "short", summary: "s", firstKeptEntryId: "kept", tokensBefore: 9 };
      // The kept record is within the page of the compaction, or on a page before it.
      for (const [name, between] of [["near", 3] as const, ["far", pageRecords] as const]) {
        const ref = await createSession(store, name);
        await store.append(ref, set);
        for (let count = 0; count < between; count += batchRecords)
          await store.append(
            ref,
            numbersTo(Math.min(batchRecords, between - count)).map((each) => userDraft(`n${count + each}`)),
          );
        await store.append(ref, [userDraft("kept", { id: "kept" }), compaction, userDraft("last", { id: "last" })]);
        const ids = new Set((await readWindow(store, ref)).records.map(({ id }) => id));
        for (const id of ["level", "model", "kept", "short", "last"]) assert.ok(ids.has(id), `${name}: ${id} is there`);
      }
    },
  },
  {
    id: "window/over-pages",
    demand: "a window of several pages is whole",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { pageRecords, batchRecords } = store.capabilities.limits;
      const wanted = 2 * pageRecords + 3;
      for (let count = 0; count < wanted; count += batchRecords)
        await store.append(
          ref,
          numbersTo(Math.min(batchRecords, wanted - count)).map((each) => userDraft(`n${count + each}`)),
        );
      await store.append(ref, [userDraft("last")], { windowFromSeq: 3 });
      const window = await readWindow(store, ref);
      assertWhole(window, 3);
      assert.equal(window.records.length, wanted - 1);
    },
  },
  {
    id: "window/one-moment",
    demand: "while others append, a window is never short of its state",
    needs: ["another"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("first")], { windowFromSeq: 1 });
      const other = await abilityOf(under, "another")();
      const write = async (): Promise<void> => {
        for (const each of numbersTo(races)) await other.append(ref, [userDraft(`n${each}`), noteDraft("aside")]);
      };
      const read = async (): Promise<void> => {
        for (const _ of numbersTo(races)) assertWhole(await readWindow(store, ref), 1);
      };
      await Promise.all([write(), read()]);
      assertWhole(await readWindow(store, ref), 1);
    },
  },
  {
    id: "window/reset",
    demand: "while the key gets new sessions, a window holds the records of its own state alone",
    needs: ["another"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("session-a")], { windowFromSeq: 1 });
      const other = await abilityOf(under, "another")();
      const reset = async (): Promise<void> => {
        for (const each of numbersTo(races)) {
          const state = await other.load(ref);
          const sessionId = `session-a${each}`;
          await other.save(ref, { sessionId }, { ifRevision: state?.revision ?? null });
          await other.append(ref, [userDraft(sessionId), userDraft(sessionId)], { windowFromSeq: 1 });
        }
      };
      const read = async (): Promise<void> => {
        for (const _ of numbersTo(races)) {
          const window = await readWindow(store, ref);
          const others = textsOf(window).filter((text) => text !== window.state.sessionId);
          assert.deepEqual(others, [], `records of another session than ${window.state.sessionId}`);
        }
      };
      await Promise.all([reset(), read()]);
    },
  },
  {
    id: "window/reset-between-pages",
    demand: "while the key gets other sessions, a window of several pages holds the records of its own state alone",
    needs: ["another"],
    async run({ under, store }) {
      const { pageRecords } = store.capabilities.limits;
      const names = numbersTo(6).map((each) => `long-${each}`);
      for (const name of names) await longSession(store, name, 2 * pageRecords + 1);
      const other = await abilityOf(under, "another")();
      const ref = refOf("a");
      let isOver = false;
      const reset = async (): Promise<void> => {
        for (const name of names) {
          if ((await other.load(ref)) !== null) await other.move(ref, { kind: "archive" });
          await other.move(refOf(name), { kind: "rename", key: ref.key });
          await wait(10);
        }
        isOver = true;
      };
      const read = async (): Promise<void> => {
        while (!isOver) {
          // For a moment no session has the key, while the writer replaces the session.
          const window = await readWindow(store, ref).catch(
            (error: unknown) => (assert.ok(hasErrorCode(error, "SESSION_NOT_FOUND"), String(error)), null),
          );
          await wait(1);
          if (window === null) continue;
          const others = textsOf(window).filter((text) => text !== window.state.sessionId);
          assert.deepEqual(others.slice(0, 1), [], `records of another session than ${window.state.sessionId}`);
          assertWhole(window, 1);
        }
      };
      await Promise.all([reset(), read()]);
    },
  },
  {
    id: "window/archived",
    demand: "the window of an archived session is found by its archive address",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two")], { windowFromSeq: 2 });
      const archived = await store.move(ref, { kind: "archive" });
      const window = await readWindow(store, archived.ref);
      assert.deepEqual([textsOf(window), window.state.archived], [["two"], true]);
      await assertMissing(store, ref);
    },
  },
  {
    id: "window/fork",
    demand: "the window of a fork has shared records and its own",
    requires: ({ fork }) => fork,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two"), userDraft("three")], { windowFromSeq: 2 });
      await store.fork?.fork(ref, refOf("b"), { sessionId: "session-b", atSeq: 3 });
      await store.append(refOf("b"), [userDraft("own")], { windowFromSeq: 2 });
      await store.append(ref, [userDraft("not shared")]);
      const window = await readWindow(store, refOf("b"));
      assert.deepEqual(textsOf(window), ["two", "three", "own"]);
      assert.equal(window.state.sessionId, "session-b");
    },
  },
  {
    id: "window/missing",
    demand: "a window of a session that is not there fails",
    async run({ store }) {
      await assertMissing(store, refOf("none"));
    },
  },
  {
    id: "window/aborted",
    demand: "a window whose signal is aborted is not read",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      await assertFails(readWindow(store, ref, { signal: AbortSignal.abort() }), "ABORTED");
    },
  },
];

async function assertMissing(store: SessionStore, ref: ReturnType<typeof refOf>): Promise<void> {
  await assertFails(readWindow(store, ref), "SESSION_NOT_FOUND");
}
