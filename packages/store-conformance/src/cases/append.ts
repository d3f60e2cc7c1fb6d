import assert from "node:assert/strict";
import {
  assertRefused,
  createSession,
  numbersTo,
  readRecords,
  readSources,
  readTexts,
  seqsOf,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const appendCases: readonly ConformanceCase[] = [
  {
    id: "append/orders-records",
    demand: "records are read in the order they were appended",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const text of ["one", "two"]) await store.append(ref, [userDraft(text)]);
      await store.append(ref, [userDraft("three"), userDraft("four"), userDraft("five")]);
      const texts = (await readTexts(store, ref)).slice(0, 4);
      assert.deepEqual(texts, ["one", "two", "three", "four"]);
    },
  },
  {
    id: "append/keeps-every-record",
    demand: "every acknowledged record can be read at once",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const count of numbersTo(5)) {
        const { head } = await store.append(ref, [userDraft(`n${count}`)]);
        assert.equal((await readRecords(store, ref)).length, count);
        assert.equal(head.lastSeq, count);
      }
    },
  },
  {
    id: "append/refuses-what-no-context-shows",
    demand:
      "a message without usable content and a misspelt type are refused, other types and every line of a file are kept",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const misspelt = { type: "message", message: { role: "user", contnt: "one" } };
      await assertRefused(store.append(ref, [misspelt]), "INPUT_INVALID");
      await assertRefused(store.append(ref, [{ ...userDraft("two"), type: "mesage" }]), "INPUT_INVALID");
      const placed = { id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
      await store.append(ref, [{ source: JSON.stringify({ ...misspelt, ...placed }) }, { type: "note", text: "kept" }]);
      assert.deepEqual(
        (await readRecords(store, ref)).map(({ type }) => type),
        ["message", "note"],
      );
    },
  },
  {
    id: "append/result-is-the-truth",
    demand: "the result says what a read and a load say afterwards",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("zero")]);
      const result = await store.append(ref, [userDraft("one"), userDraft("two")], {
        entry: { label: "x" },
        windowFromSeq: 2,
      });
      const read = await readRecords(store, ref, { afterSeq: 1 });
      assert.deepEqual(
        result.records,
        read.map(({ seq, id, parentId, side, tsMs, storedAtMs }) => ({ seq, id, parentId, side, tsMs, storedAtMs })),
      );
      const state = await store.load(ref);
      assert.deepEqual(result.head, state?.head);
      assert.equal(result.revision, state?.revision);
      assert.equal(result.replayed, false);
    },
  },
  {
    id: "append/fills-in",
    demand: "id, parent and time are filled in, and stand in the record",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two")]);
      const records = await readRecords(store, ref);
      assert.equal(new Set(records.map(({ id }) => id)).size, 2);
      for (const { record, id, parentId, type, tsMs, storedAtMs } of records) {
        assert.deepEqual([record.id, record.parentId, record.type], [id, parentId, type]);
        assert.match(record.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.equal(tsMs, Date.parse(record.timestamp));
        assert.ok(typeof storedAtMs === "number" && storedAtMs > 0, "the store's own time is known");
      }
    },
  },
  {
    id: "append/links-records",
    demand: "a record follows the head, inside a batch too; a given parent is kept",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" })]);
      await store.append(ref, [
        userDraft("three", { id: "r3" }),
        userDraft("branch", { id: "r4", parentId: "r1" }),
        userDraft("five", { id: "r5" }),
      ]);
      const parents = (await readRecords(store, ref)).map(({ parentId }) => parentId);
      assert.deepEqual(parents, [null, "r1", "r2", "r1", "r4"]);
    },
  },
  {
    id: "append/given-id",
    demand: "a given id is kept",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { records } = await store.append(ref, [userDraft("one", { id: "a given id" })]);
      assert.deepEqual([records[0]?.id, (await readRecords(store, ref))[0]?.id], ["a given id", "a given id"]);
    },
  },
  {
    id: "append/id-taken",
    demand: "an id that the session holds is refused, in a batch and later; another session may use it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(
        store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r1" })]),
        "RECORD_ID_TAKEN",
      );
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      await assertRefused(
        store.append(ref, [userDraft("new", { id: "r9" }), userDraft("two", { id: "r1" })]),
        "RECORD_ID_TAKEN",
      );
      assert.deepEqual(await readTexts(store, ref), ["one"]);
      await store.append(await createSession(store, "b"), [userDraft("one", { id: "r1" })]);
    },
  },
  {
    id: "append/all-or-nothing",
    demand: "one wrong record refuses the whole batch",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const error = await assertRefused(
        store.append(ref, [userDraft("one"), userDraft("two"), { type: "" }]),
        "RECORD_INVALID",
      );
      assert.equal(error.details["index"], 2, "the error says which record is wrong");
      assert.deepEqual(await readRecords(store, ref), []);
      assert.equal((await store.load(ref))?.head.lastSeq, 0);
    },
  },
  {
    id: "append/not-json",
    demand: "what JSON cannot hold is refused as RECORD_INVALID, with a key too",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const cycle: Record<string, unknown> = {};
      cycle["self"] = cycle;
      await assertRefused(store.append(ref, [userDraft("one"), userDraft("two", { cycle })]), "RECORD_INVALID");
      await assertRefused(
        store.append(ref, [userDraft("one", { big: 1n })], { idempotencyKey: "k" }),
        "RECORD_INVALID",
      );
      assert.deepEqual(await readRecords(store, ref), []);
    },
  },
  {
    id: "append/reserved-fields",
    demand: "seq and _tl belong to the store and are refused in a draft",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [userDraft("one", { seq: 7 })]), "RECORD_INVALID");
      await assertRefused(store.append(ref, [userDraft("one", { _tl: {} })]), "RECORD_INVALID");
    },
  },
  {
    id: "append/any-json",
    demand: "every text and value of JSON comes back as it was",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const texts = [
        "",
        "\0\u0007\u001f",
        "ünï 漢字 😀 e\u0301",
        "\u2028\u2029\u0085",
        "lone \ud800 half",
        '"\\/\b\f\n\r\t',
        "x".repeat(70_000),
      ];
      const values = {
        texts,
        numbers: [0, 1e21, -1.5, Number.MAX_SAFE_INTEGER, 5e-324],
        nested: [[[{ a: null, b: [true, false, {}] }]]],
        "": "empty name",
      };
      await store.append(ref, [userDraft("one", { values })]);
      assert.deepEqual((await readRecords(store, ref))[0]?.record["values"], values);
    },
  },
  {
    id: "append/unknown-fields",
    demand: "records of unknown types and fields are kept whole, the field __proto__ included",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const draft = JSON.parse(
        '{"type":"someday","id":"r1","__proto__":{"x":1},"constructor":2,"new":{"deep":[1]}}',
      ) as { type: string };
      await store.append(ref, [draft]);
      const { parentId: _parent, timestamp: _time, ...rest } = (await readRecords(store, ref))[0]?.record ?? {};
      assert.equal(JSON.stringify(rest), JSON.stringify(draft));
    },
  },
  {
    id: "append/four-fields-first",
    demand: "a line begins with type, id, parentId and timestamp, whatever the other fields are called",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const draft = { "7": "seven", ...userDraft("one", { id: "r1", "0": "nought" }), zebra: 1 };
      await store.append(ref, [draft]);
      const [stored] = await readSources(store, ref);
      assert.ok(stored !== undefined, "the record can be read");
      const { timestamp } = stored.record;
      const line = String(stored.source);
      assert.ok(
        line.startsWith(`{"type":"message","id":"r1","parentId":null,"timestamp":"${timestamp}",`),
        `the line begins otherwise: ${line}`,
      );
      assert.deepEqual(JSON.parse(line), { ...draft, parentId: null, timestamp });
    },
  },
  {
    id: "append/empty-batch",
    demand: "an append without records writes its entry patch and nothing else",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      const before = await store.load(ref);
      const result = await store.append(ref, [], { entry: { label: "x" } });
      assert.deepEqual(result.records, []);
      assert.deepEqual(result.head, before?.head);
      assert.equal((await store.load(ref))?.entry.label, "x");
    },
  },
];

export const sequenceCases: readonly ConformanceCase[] = [
  {
    id: "sequence/dense",
    demand: "seq counts from 1 without a gap",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const size of [1, 3, 2])
        await store.append(
          ref,
          numbersTo(size).map((each) => userDraft(`n${each}`)),
        );
      assert.deepEqual(seqsOf(await readRecords(store, ref)), numbersTo(6));
    },
  },
  {
    id: "sequence/per-session",
    demand: "every session counts for itself",
    async run({ store }) {
      const [one, two] = [await createSession(store, "a"), await createSession(store, "b")];
      for (const ref of [one, two, one, two]) await store.append(ref, [userDraft("n")]);
      assert.deepEqual(
        [seqsOf(await readRecords(store, one)), seqsOf(await readRecords(store, two))],
        [
          [1, 2],
          [1, 2],
        ],
      );
    },
  },
  {
    id: "sequence/not-reused",
    demand: "the seq of a redacted record is not given again",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" })]);
      await store.redact(ref, ["r2"], { reason: "test" });
      const { records } = await store.append(ref, [userDraft("three")]);
      assert.equal(records[0]?.seq, 3);
      assert.deepEqual(seqsOf(await readRecords(store, ref)), [1, 2, 3]);
    },
  },
  {
    id: "sequence/refused-takes-none",
    demand: "a refused append leaves no gap",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      await assertRefused(store.append(ref, [userDraft("two")], { expect: { head: null } }), "APPEND_CONFLICT");
      await assertRefused(store.append(ref, [userDraft("two", { id: "r1" })]), "RECORD_ID_TAKEN");
      assert.equal((await store.append(ref, [userDraft("two")])).records[0]?.seq, 2);
    },
  },
  {
    id: "sequence/not-by-time",
    demand: "order never comes from times or ids",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const years = ["2030", "2010", "2020"];
      for (const year of years)
        await store.append(ref, [userDraft(year, { id: `id-${year}`, timestamp: `${year}-01-01T00:00:00.000Z` })]);
      assert.deepEqual(await readTexts(store, ref), years);
      assert.equal((await store.load(ref))?.head.headId, "id-2020");
    },
  },
];
