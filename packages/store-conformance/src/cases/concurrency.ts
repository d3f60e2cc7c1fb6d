import assert from "node:assert/strict";
import { systemClock } from "@throughline/core/internal";
import {
  abilityOf,
  assertRefused,
  createSession,
  numbersTo,
  readRecords,
  readTexts,
  seqsOf,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const concurrencyCases: readonly ConformanceCase[] = [
  {
    id: "concurrency/one-line",
    demand: "many appends at once make one line of records, each once",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await Promise.all(numbersTo(20).map((each) => store.append(ref, [userDraft(`n${each}`)])));
      const records = await readRecords(store, ref);
      assert.deepEqual(seqsOf(records), numbersTo(20));
      assert.deepEqual(
        records.map(({ parentId }) => parentId),
        [null, ...records.slice(0, -1).map(({ id }) => id)],
      );
      assert.equal(new Set(await readTexts(store, ref)).size, 20);
    },
  },
  {
    id: "concurrency/batches-together",
    demand: "the records of a batch stand together",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await Promise.all(
        ["a", "b", "c", "d"].map((text) =>
          store.append(
            ref,
            numbersTo(5).map(() => userDraft(text)),
          ),
        ),
      );
      const texts = (await readTexts(store, ref)).join("");
      assert.equal(texts.replaceAll(/(.)\1{4}/g, "$1").length, 4, `batches are mixed: ${texts}`);
    },
  },
  {
    id: "concurrency/two-handles",
    demand: "two handles write one session: every record once, in one line",
    requires: ({ writers }) => writers !== "one-handle",
    needs: ["another"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const other = await abilityOf(under, "another")();
      await Promise.all(
        numbersTo(20).map((each) => (each % 2 === 0 ? store : other).append(ref, [userDraft(`n${each}`)])),
      );
      const records = await readRecords(other, ref);
      assert.deepEqual(seqsOf(records), numbersTo(20));
      assert.deepEqual(
        records.map(({ parentId }) => parentId),
        [null, ...records.slice(0, -1).map(({ id }) => id)],
      );
    },
  },
  {
    id: "concurrency/handles-see-each-other",
    demand: "what one handle acknowledged the other sees, and is held to",
    requires: ({ writers }) => writers !== "one-handle",
    needs: ["another"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const other = await abilityOf(under, "another")();
      assert.deepEqual(await readTexts(other, ref), []);
      await store.append(ref, [userDraft("one")], { idempotencyKey: "k", entry: { label: "x" } });
      assert.deepEqual(await readTexts(other, ref), ["one"]);
      assert.equal((await other.load(ref))?.entry.label, "x");
      await assertRefused(other.append(ref, [userDraft("two")], { expect: { head: null } }), "APPEND_CONFLICT");
      await assertRefused(other.save(ref, { sessionId: "session-a" }, { ifRevision: 1 }), "REVISION_CONFLICT");
      assert.equal((await other.append(ref, [userDraft("one")], { idempotencyKey: "k" })).replayed, true);
    },
  },
];

export const gapCases: readonly ConformanceCase[] = [
  {
    id: "gaps/reader-beside-writer",
    demand: "a reader beside a writer sees no record without all before it, and all that was acknowledged",
    async run({ store }) {
      const ref = await createSession(store, "a");
      let acknowledged = 0;
      let isDone = false;
      const writing = (async (): Promise<void> => {
        for (const each of numbersTo(40)) {
          await Promise.all([store.append(ref, [userDraft(`n${each}`)]), store.append(ref, [userDraft(`m${each}`)])]);
          acknowledged = each * 2;
        }
      })().finally(() => (isDone = true));
      const watch = async (): Promise<void> => {
        const atLeast = acknowledged;
        const seqs = seqsOf(await readRecords(store, ref));
        assert.deepEqual(seqs, numbersTo(seqs.length));
        assert.ok(seqs.length >= atLeast, `${atLeast} records were acknowledged, ${seqs.length} are seen`);
      };
      try {
        do {
          await watch();
          // A store that answers synchronously would otherwise give the writer and its timers no turn.
          await systemClock.sleep(0);
        } while (!isDone);
      } finally {
        await writing;
      }
      await watch();
    },
  },
  {
    id: "gaps/whole-batches",
    demand: "a reader beside a writer sees a batch whole or not at all",
    async run({ store }) {
      const ref = await createSession(store, "a");
      let isDone = false;
      const writing = (async (): Promise<void> => {
        for (const _batch of numbersTo(20))
          await store.append(
            ref,
            numbersTo(4).map(() => userDraft("n")),
          );
      })().finally(() => (isDone = true));
      try {
        do {
          const seen = (await readRecords(store, ref)).length;
          assert.equal(seen % 4, 0, `${seen} records are seen`);
          assert.equal(((await store.load(ref))?.head.lastSeq ?? 0) % 4, 0);
          await systemClock.sleep(0);
        } while (!isDone);
      } finally {
        await writing;
      }
    },
  },
];
