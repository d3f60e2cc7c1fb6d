import assert from "node:assert/strict";
import type { AppendDraft, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import {
  assertFails,
  assertRefused,
  createSession,
  lineOf,
  numbersTo,
  readRecords,
  readSources,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

function lineOfBytes(id: string, bytes: number): string {
  const frame = lineOf(id, '"x":""').length;
  return lineOf(id, `"x":"${"x".repeat(bytes - frame)}"`);
}

function nested(levels: number): unknown {
  return JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown;
}

function deepLine(): string {
  return lineOf("deep", `"deep":${JSON.stringify(nested(200))}`);
}

async function assertNothingThere(store: SessionStore, ref: SessionRef): Promise<void> {
  assert.equal((await store.load(ref))?.head.lastSeq, 0);
  assert.deepEqual(await readRecords(store, ref), []);
}

export const limitCases: readonly ConformanceCase[] = [
  {
    id: "limits/largest-record",
    demand: "a record of exactly the largest size is taken and given back",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const source = lineOfBytes("r1", store.capabilities.limits.recordBytes);
      await store.append(ref, [{ source }]);
      assert.ok((await readSources(store, ref))[0]?.source === source, "the record comes back whole");
    },
  },
  {
    id: "limits/record-too-large",
    demand: "a record larger than declared is refused, and its batch with it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const source = lineOfBytes("r1", store.capabilities.limits.recordBytes + 1);
      await assertRefused(store.append(ref, [userDraft("small"), { source }]), "RECORD_TOO_LARGE");
      await assertNothingThere(store, ref);
    },
  },
  {
    id: "limits/batch-records",
    demand: "a batch of exactly the most records is taken, one of more refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const most = store.capabilities.limits.batchRecords;
      await assertRefused(
        store.append(
          ref,
          numbersTo(most + 1).map(() => userDraft("n")),
        ),
        "BATCH_TOO_LARGE",
      );
      await assertNothingThere(store, ref);
      await store.append(
        ref,
        numbersTo(most).map(() => userDraft("n")),
      );
      assert.equal((await store.load(ref))?.head.lastSeq, most);
    },
  },
  {
    id: "limits/batch-bytes",
    demand: "a batch of more bytes than declared is refused",
    requires: ({ limits }) => limits.recordBytes * limits.batchRecords > limits.batchBytes,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { recordBytes, batchBytes } = store.capabilities.limits;
      const count = Math.ceil(batchBytes / recordBytes) + 1;
      const drafts = numbersTo(count).map((each) => ({
        source: lineOfBytes(`r${each}`, Math.min(recordBytes, batchBytes)),
      }));
      await assertRefused(store.append(ref, drafts), "BATCH_TOO_LARGE");
      await assertNothingThere(store, ref);
    },
  },
  {
    id: "limits/nesting",
    demand:
      "a record of 200 levels is taken and given back; one of more is refused with its index, as is such an entry",
    async run({ store }) {
      const ref = await createSession(store, "a");
      // The record itself counts as one level.
      const draft = (levels: number): object => userDraft("deep", { deep: nested(levels - 1) });
      await store.append(ref, [draft(200) as AppendDraft], { entry: { deep: nested(199) } });
      assert.deepEqual((await readRecords(store, ref))[0]?.record["deep"], nested(199));
      const flattened = { toJSON: () => nested(200) };
      for (const wrong of [draft(201), draft(10_000), userDraft("deep", { flattened }), { source: deepLine() }]) {
        const error = await assertRefused(
          store.append(ref, [userDraft("flat"), wrong as AppendDraft]),
          "RECORD_INVALID",
        );
        assert.equal(error.details["index"], 1, "the error says which record is too deep");
      }
      await assertRefused(store.append(ref, [userDraft("x")], { entry: { deep: nested(200) } }), "INPUT_INVALID");
      const state = await store.load(ref);
      assert.deepEqual([state?.head.lastSeq, state?.entry["deep"]], [1, nested(199)]);
      const entry = { sessionId: state?.sessionId ?? "", deep: nested(200) };
      await assertRefused(store.save(ref, entry, { ifRevision: state?.revision ?? null }), "INPUT_INVALID");
    },
  },
];

export const pagingCases: readonly ConformanceCase[] = [
  {
    id: "paging/page-records",
    demand: "no page is empty or holds more records than declared",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { pageRecords, batchRecords } = store.capabilities.limits;
      const total = pageRecords * 2 + 1;
      for (let left = total; left > 0; left -= batchRecords) {
        await store.append(
          ref,
          numbersTo(Math.min(left, batchRecords)).map(() => userDraft("n")),
        );
      }
      for (const order of ["ascending", "descending"] as const) {
        const sizes: number[] = [];
        for await (const page of store.read(ref, { order })) sizes.push(page.records.length);
        assert.ok(
          sizes.every((size) => size > 0 && size <= pageRecords),
          `pages of ${sizes.join(", ")} records`,
        );
        assert.equal(
          sizes.reduce((sum, size) => sum + size, 0),
          total,
        );
      }
    },
  },
  {
    id: "paging/page-bytes",
    demand: "a page ends when it has reached the declared bytes",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { pageBytes, recordBytes } = store.capabilities.limits;
      const size = Math.min(Math.ceil(pageBytes / 2) + 100, recordBytes);
      for (const each of numbersTo(5)) await store.append(ref, [{ source: lineOfBytes(`r${each}`, size) }]);
      for await (const { records } of store.read(ref)) {
        const beforeLast = records.slice(0, -1).reduce((sum, { bytes }) => sum + bytes, 0);
        assert.ok(beforeLast < pageBytes, `a page went on after ${beforeLast} of ${pageBytes} bytes`);
      }
    },
  },
  {
    id: "paging/between",
    demand: "afterSeq and beforeSeq leave out the record they name",
    async run({ store }) {
      const ref = await createTen(store);
      const seqs = async (options: object): Promise<number[]> =>
        (await readRecords(store, ref, options)).map(({ seq }) => seq);
      assert.deepEqual(await seqs({ afterSeq: 7 }), [8, 9, 10]);
      assert.deepEqual(await seqs({ beforeSeq: 3 }), [1, 2]);
      assert.deepEqual(await seqs({ afterSeq: 3, beforeSeq: 6 }), [4, 5]);
      assert.deepEqual(await seqs({ afterSeq: 10 }), []);
      assert.deepEqual(await seqs({ afterSeq: 5, beforeSeq: 6 }), []);
      assert.deepEqual(await seqs({ afterSeq: 3, beforeSeq: 6, order: "descending" }), [5, 4]);
    },
  },
  {
    id: "paging/limit",
    demand: "no more records come than the limit says, over all pages",
    async run({ store }) {
      const ref = await createTen(store);
      for (const limit of [0, 1, 4, 10, 99])
        assert.equal((await readRecords(store, ref, { limit })).length, Math.min(limit, 10));
    },
  },
  {
    id: "paging/descending",
    demand: "descending begins with the newest",
    async run({ store }) {
      const ref = await createTen(store);
      const seqs = async (options: object): Promise<number[]> =>
        (await readRecords(store, ref, { order: "descending", ...options })).map(({ seq }) => seq);
      assert.deepEqual(await seqs({}), numbersTo(10).toReversed());
      assert.deepEqual(await seqs({ limit: 3 }), [10, 9, 8]);
      assert.deepEqual(await seqs({ beforeSeq: 5, limit: 2 }), [4, 3]);
    },
  },
  {
    id: "paging/nothing-to-read",
    demand: "reading an empty session gives no page",
    async run({ store }) {
      const pages = [];
      for await (const page of store.read(await createSession(store, "a"))) pages.push(page);
      assert.deepEqual(pages, []);
    },
  },
  {
    id: "paging/last-seq",
    demand: "a page states the last seq of the session",
    async run({ store }) {
      const ref = await createTen(store);
      for await (const page of store.read(ref, { beforeSeq: 4 })) assert.equal(page.lastSeq, 10);
    },
  },
  {
    id: "paging/append-while-reading",
    demand: "a reader that appends sees every record once, in order",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { pageRecords, batchRecords } = store.capabilities.limits;
      const size = Math.min(pageRecords, batchRecords);
      for (const _batch of numbersTo(3))
        await store.append(
          ref,
          numbersTo(size).map(() => userDraft("n")),
        );
      for (const order of ["ascending", "descending"] as const) {
        const before = (await store.load(ref))?.head.lastSeq ?? 0;
        const seqs: number[] = [];
        for await (const page of store.read(ref, { order })) {
          seqs.push(...page.records.map(({ seq }) => seq));
          if (seqs.length < before) await store.append(ref, [userDraft("during")]);
        }
        const inOrder = order === "ascending" ? seqs : seqs.toReversed();
        assert.deepEqual(inOrder, numbersTo(inOrder.length));
        assert.ok(inOrder.length >= before, "what was there at the start is read");
      }
    },
  },
  {
    id: "paging/one-session",
    demand: "all pages of a read are of the session that held the key at the first, also when it is reset meanwhile",
    async run({ store }) {
      const ref = await createPages(store, "old");
      const count = (await store.load(ref))?.head.lastSeq ?? 0;
      const records: StoredRecord[] = [];
      for await (const page of store.read(ref)) {
        if (records.length === 0) {
          const { revision = 0 } = (await store.load(ref)) ?? {};
          await store.save(ref, { sessionId: "session-next" }, { ifRevision: revision });
          await fillPages(store, ref, "new");
        }
        records.push(...page.records);
      }
      assert.deepEqual(
        records.map(({ seq, record }) => [seq, record["text"]]),
        numbersTo(count).map((seq) => [seq, "old"]),
      );
    },
  },
  {
    id: "paging/purged-while-reading",
    demand: "a read says SESSION_NOT_FOUND once its session was purged, also when another has its key",
    async run({ store }) {
      for (const isReplaced of [false, true]) {
        const ref = await createPages(store, "old");
        const pages = store.read(ref)[Symbol.asyncIterator]();
        assert.equal((await pages.next()).done, false);
        await store.remove(ref, { purge: true });
        if (isReplaced) {
          await store.save(ref, { sessionId: "session-next" }, { ifRevision: null });
          await fillPages(store, ref, "new");
        }
        await assertFails(pages.next(), "SESSION_NOT_FOUND");
      }
    },
  },
];

/** Creates a session with more than two pages of records, each with the text. */
async function createPages(store: SessionStore, text: string): Promise<SessionRef> {
  const ref = await createSession(store, "a");
  await fillPages(store, ref, text);
  return ref;
}

async function fillPages(store: SessionStore, ref: SessionRef, text: string): Promise<void> {
  const { pageRecords, batchRecords } = store.capabilities.limits;
  const size = Math.min(pageRecords, batchRecords);
  for (let made = 0; made <= 2 * pageRecords; made += size)
    await store.append(
      ref,
      numbersTo(size).map(() => userDraft(text, { text })),
    );
}

async function createTen(store: SessionStore): Promise<SessionRef> {
  const ref = await createSession(store, "a");
  await store.append(
    ref,
    numbersTo(10).map((each) => userDraft(`n${each}`)),
  );
  return ref;
}
