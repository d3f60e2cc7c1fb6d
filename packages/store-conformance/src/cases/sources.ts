import assert from "node:assert/strict";
import { copyRecords } from "@throughline/core/internal";
import { crc32 } from "node:zlib";

import type { RecordHead } from "@throughline/core/internal";
import { assertRefused, createSession, lineOf, readSources, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

/** JSON.parse and JSON.stringify would change these lines. */
const lines: readonly string[] = [
  lineOf("r1", '"n":[1.0,1e3,-0,1E+2,0.10]'),
  lineOf("r2", '"big":9007199254740993,"tiny":1e-400'),
  lineOf("r3", '"twice":1,"twice":2'),
  lineOf("r4", '"text":"caf\\u00e9 \\/ \\ud83d\\ude00"'),
  lineOf("r5", '"half":"\\ud800"'),
  lineOf("r6", '"space" : [ 1 ,\t2 ]  ').replace("{", "{ "),
  `${lineOf("r7", '"carriage":"return"')}\r`,
  lineOf("r8", '"__proto__":{"x":1},"2":"b","1":"a"'),
];

const latin = Uint8Array.from([
  ...Buffer.from('{"type":"message","text":"caf'),
  0xe9,
  0xff,
  0x00,
  ...Buffer.from('"}'),
]);

function meaning(id: string): {
  readonly type: string;
  readonly id: string;
  readonly parentId: null;
  readonly timestamp: string;
  readonly text: string;
} {
  return { type: "message", id, parentId: null, timestamp: "2026-01-02T03:04:05.006Z", text: "meaning" };
}

export const sourceCases: readonly ConformanceCase[] = [
  {
    id: "sources/lines-kept",
    demand: "an imported line comes back as it was, to the byte",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(
        ref,
        lines.map((source) => ({ source })),
      );
      const records = await readSources(store, ref);
      assert.deepEqual(
        records.map(({ source }) => source),
        lines,
      );
      for (const { record, source, isSourceCanonical } of records) {
        assert.equal(isSourceCanonical, true);
        assert.deepEqual(record, JSON.parse(String(source)));
      }
    },
  },
  {
    id: "sources/bytes-kept",
    demand: "a line that is not UTF-8 comes back as the same bytes, with the record that says what it means",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [{ source: latin, record: meaning("r1") }]);
      const [record] = await readSources(store, ref);
      assert.ok(record?.source instanceof Uint8Array, "the source is bytes");
      assert.deepEqual([...record.source], [...latin]);
      assert.deepEqual(
        [record.record, record.isSourceCanonical, record.bytes],
        [meaning("r1"), false, latin.byteLength],
      );
    },
  },
  {
    id: "sources/with-record",
    demand: "a line that means something else than its JSON is kept beside its meaning",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const old = '{"role":"user","content":"flat"}';
      await store.append(ref, [
        { source: old, record: meaning("r1") },
        { source: "", record: meaning("r2") },
        { source: "\ufeff{torn", record: meaning("r3") },
      ]);
      const records = await readSources(store, ref);
      assert.deepEqual(
        records.map(({ source }) => source),
        [old, "", "\ufeff{torn"],
      );
      assert.deepEqual(
        records.map(({ record, isSourceCanonical }) => [record, isSourceCanonical]),
        ["r1", "r2", "r3"].map((id) => [meaning(id), false]),
      );
    },
  },
  {
    id: "sources/own-records",
    demand: "the source of a record of our own is its JSON",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      const [record] = await readSources(store, ref);
      assert.deepEqual([JSON.parse(String(record?.source)), record?.isSourceCanonical], [record?.record, true]);
    },
  },
  {
    id: "sources/one-line",
    demand: "a source that is not one line is refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [{ source: lineOf("r1", '\n"a":1') }]), "RECORD_INVALID");
      await assertRefused(
        store.append(ref, [{ source: Uint8Array.of(0x0a), record: meaning("r1") }]),
        "RECORD_INVALID",
      );
      await assertRefused(store.append(ref, [{ source: "half \ud800", record: meaning("r1") }]), "RECORD_INVALID");
    },
  },
  {
    id: "sources/parts-stated",
    demand: "an imported record must state its id, parent and time",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [{ source: '{"type":"message"}' }]), "RECORD_INVALID");
      await assertRefused(store.append(ref, [{ source: "{torn" }]), "RECORD_INVALID");
      await assertRefused(store.append(ref, [{ source: latin }]), "RECORD_INVALID");
    },
  },
  {
    id: "sources/copied",
    demand: "records copied to another session have the same seq, ids and lines",
    async run({ store }) {
      const [one, two] = [await createSession(store, "a"), await createSession(store, "b")];
      await store.append(one, [
        ...lines.map((source) => ({ source })),
        { source: latin, record: meaning("r9") },
        userDraft("own"),
      ]);
      assert.equal(await copyRecords({ store, ref: one }, { store, ref: two }), 10);
      const essence = ({
        seq,
        id,
        parentId,
        side,
        source,
      }: Awaited<ReturnType<typeof readSources>>[number]): unknown => [seq, id, parentId, side, source];
      assert.deepEqual((await readSources(store, two)).map(essence), (await readSources(store, one)).map(essence));
    },
  },
  {
    id: "sources/head-payload",
    demand: "a read of heads gives size and checksum and no content",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one 😀"), { source: lines[3] ?? "" }]);
      const heads: RecordHead[] = [];
      for await (const page of store.read(ref, { payload: "head" })) heads.push(...page.records);
      const full = await readSources(store, ref);
      for (const [index, head] of heads.entries()) {
        const {
          record: _record,
          source,
          isSourceCanonical: _canonical,
          ...rest
        } = full[index] ?? assert.fail("a record is missing");
        const { role: _role, toolName: _toolName, ...common } = head;
        assert.deepEqual(common, rest);
        assert.equal(head.bytes, Buffer.byteLength(source));
      }
      assert.equal(heads.length, 2);
      assert.ok(
        heads.every(({ crc }) => Number.isInteger(crc)),
        "what the store wrote has a checksum",
      );
    },
  },
  {
    id: "sources/checksum",
    demand: "without a codec the checksum is the CRC-32 of the line",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one 😀"), { source: lines[1] ?? "" }]);
      for (const { crc, source } of await readSources(store, ref)) assert.equal(crc, crc32(source));
    },
  },
];
