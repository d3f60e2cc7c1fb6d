import { crc32 } from "node:zlib";
import type { AppendDraft, PayloadCodec, RecordPage } from "@throughline/core";
import type { RecordHead } from "@throughline/core/internal";
import {
  defaultStoreLimits,
  type LinkedRecord,
  linkRecords,
  prepareDrafts,
  refused,
  systemClock,
  systemRecordIds,
} from "@throughline/core/internal";
import { codecTokens } from "../src/payload-coder.ts";
import { createRowCoder } from "../src/row-coder.ts";
import { readPages } from "@throughline/store-kit";
import { type PageRange, pageRows } from "../src/read-pages.ts";
import { describe, expect, it } from "vitest";

const place = { ref: { namespace: "", agentId: "main", key: "k" }, sessionId: "s" };
const at = { seq: 3, storedAtMs: 9 };
const base = { type: "message", id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
const line = '{"type":"message","id":"r1","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","n":1.0}';
const bytes = Uint8Array.of(0xff, 0x00);

/** Turns every byte around; refuses what is bound to another record. */
const codec: PayloadCodec = {
  name: "turn",
  encode: (plain, { id }) => Buffer.concat([Buffer.from(`${id}!`), plain.map((byte) => byte ^ 0xff)]),
  decode: (kept, { id }) => {
    if (!Buffer.from(kept).toString("latin1").startsWith(`${id}!`)) throw new Error("another record's");
    return kept.slice(id.length + 1).map((byte) => byte ^ 0xff);
  },
};

function linked(draft: AppendDraft): LinkedRecord {
  const options = { ids: systemRecordIds, clock: systemClock, limits: defaultStoreLimits };
  const [item] = linkRecords(prepareDrafts([draft], options), null);
  if (item === undefined) throw new Error("one draft is one record");
  return item;
}

describe.each([
  ["without a codec", createRowCoder(undefined)],
  ["with a codec", createRowCoder(codec)],
])("a row coder %s", (_name, coder) => {
  it.each<readonly [AppendDraft, string | Uint8Array, boolean]>([
    [{ source: line }, line, true],
    [{ source: bytes, record: base }, bytes, false],
    [{ source: "old line", record: base }, "old line", false],
    [{ source: "", record: base }, "", false],
  ])("gives a line and its meaning back", (draft, source, isSourceCanonical) => {
    const item = linked(draft);
    const row = coder.encodeRecord(place, item, at);
    const read = coder.decodeRecord(place, row, "source");
    expect([read.source, read.isSourceCanonical, read.record]).toEqual([source, isSourceCanonical, item.record]);
    expect(coder.decodeRecord(place, row, "head")).toEqual({
      seq: 3,
      id: "r1",
      parentId: null,
      type: "message",
      side: false,
      tsMs: Date.parse(base.timestamp),
      storedAtMs: 9,
      // The columns of a row, which a store keeps beside what the coder makes.
      role: null,
      toolName: null,
      bytes: Buffer.byteLength(source),
      crc: row.crc,
    });
  });

  it("puts a tombstone in a record's place, once", () => {
    const row = coder.encodeRecord(place, linked({ ...base, type: "note", text: "secret" }), at);
    const tombstone = coder.redactRecord(place, row, { reason: "asked", redactedAtMs: 1 });
    if (tombstone === null) throw new Error("the record is no tombstone yet");
    expect([tombstone.seq, tombstone.id, tombstone.storedAtMs, tombstone.source]).toEqual([3, "r1", 9, null]);
    expect(JSON.stringify(coder.decodeRecord(place, tombstone, "record").record)).not.toContain("secret");
    expect(coder.redactRecord(place, tombstone, { reason: "again", redactedAtMs: 2 })).toBeNull();
  });

  it("gives an entry back", () => {
    const entry = { sessionId: "s", label: "x" };
    const read = coder.decodeEntry(place, coder.encodeEntry(place, entry));
    expect(read).toEqual(entry);
    expect(read).not.toBe(entry);
  });
});

describe("createRowCoder", () => {
  const plain = createRowCoder(undefined);

  it("covers the source by the checksum where one is kept", () => {
    expect(plain.encodeRecord(place, linked({ source: line }), at).crc).toBe(crc32(line));
    const both = plain.encodeRecord(place, linked({ source: bytes, record: { ...base, type: "note" } }), at);
    expect(both.crc).toBe(crc32(bytes, crc32(linked({ ...base, type: "note" }).text)));
  });

  it("shares no bytes with the caller", () => {
    const given = Uint8Array.from(bytes);
    const row = plain.encodeRecord(place, linked({ source: given, record: base }), at);
    given.fill(7);
    const read = plain.decodeRecord(place, row, "source").source;
    expect(read).toEqual(bytes);
    (read as Uint8Array).fill(7);
    expect(plain.decodeRecord(place, row, "source").source).toEqual(bytes);
  });

  it("says CODEC_FAILED for what another codec kept, also when that fails only in the text", () => {
    const failed = expect.objectContaining({ code: "CODEC_FAILED", outcome: "not-applied" });
    const coder = createRowCoder(codec);
    const garbling = createRowCoder({ ...codec, decode: (kept) => kept });
    const row = coder.encodeRecord(place, linked({ ...base, type: "note" }), at);
    const entry = coder.encodeEntry(place, { sessionId: "s" });
    for (const wrong of [plain, garbling]) {
      expect(() => wrong.decodeRecord(place, row, "record")).toThrow(failed);
      expect(() => wrong.decodeEntry(place, entry)).toThrow(failed);
      expect(() => wrong.redactRecord(place, row, { reason: "", redactedAtMs: 0 })).toThrow(failed);
    }
    expect(() => coder.decodeEntry(place, plain.encodeEntry(place, { sessionId: "s" }))).toThrow(failed);
    expect(() => coder.decodeRecord(place, { ...row, id: "r2" }, "record")).toThrow(failed);
  });
});

describe("pages", () => {
  const all: PageRange = { afterSeq: 0, beforeSeq: Infinity, order: "ascending", left: Infinity };

  it("end at their records, their bytes and what is left, and take no row beyond", () => {
    let taken = 0;
    function* rows() {
      for (; taken < 100; taken++) yield { bytes: 10 };
    }
    const limits = { pageRecords: 4, pageBytes: 25 };
    expect(pageRows(rows(), all, limits)).toHaveLength(3);
    expect(taken).toBe(2);
    expect(pageRows(rows(), all, { ...limits, pageBytes: 1000 })).toHaveLength(4);
    expect(pageRows(rows(), { left: 1 }, limits)).toHaveLength(1);
    expect(pageRows(rows(), { left: 0 }, limits)).toEqual([]);
    expect(pageRows([{ bytes: 1000 }], all, limits)).toHaveLength(1);
  });

  function head(seq: number): RecordHead {
    const content = { side: false, tsMs: null, storedAtMs: null, bytes: 1, crc: null };
    return { ...content, seq, id: `r${seq}`, parentId: null, type: "message" };
  }

  async function read(options: object): Promise<readonly (readonly number[])[]> {
    const pages: number[][] = [];
    const page = (range: PageRange): RecordPage<"head"> => {
      const all = [1, 2, 3, 4, 5].filter((seq) => seq > range.afterSeq && seq < range.beforeSeq).map(head);
      const rows = range.order === "ascending" ? all : all.toReversed();
      const records = pageRows(rows, range, { pageRecords: 2, pageBytes: 100 });
      return { records, lastSeq: 5 };
    };
    for await (const { records } of readPages<"head">(options, page)) pages.push(records.map(({ seq }) => seq));
    return pages;
  }

  it("follow one another without a gap, up to the limit", async () => {
    expect(await read({})).toEqual([[1, 2], [3, 4], [5]]);
    expect(await read({ order: "descending", limit: 3 })).toEqual([[5, 4], [3]]);
    expect(await read({ afterSeq: -5, beforeSeq: 2 })).toEqual([[1]]);
    expect(await read({ limit: 0 })).toEqual([]);
  });

  it("look at the session once even when nothing is wanted, and refuse bounds that are no numbers", async () => {
    const missing = async () => {
      throw new Error("no such session");
    };
    await expect(readPages({ limit: 0 }, missing).next()).rejects.toThrow("no such session");
    for (const bound of ["limit", "afterSeq", "beforeSeq"]) {
      await expect(read({ [bound]: Number.NaN })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    }
  });
});

it("a codec gives tokens of letters and digits, and fails as CODEC_FAILED otherwise", () => {
  const tokenOf = (searchToken: NonNullable<PayloadCodec["searchToken"]>): string =>
    codecTokens({ ...codec, searchToken }, "n", "search")("secret");
  expect(tokenOf((word, namespace, purpose) => `${word}${namespace}${purpose}`)).toBe("secretnsearch");
  const failing = [
    () => "",
    () => "a b",
    () => "A",
    () => {
      throw refused("KEYRING_IO", "The disk is gone.");
    },
  ];
  for (const each of failing)
    expect(() => tokenOf(each)).toThrow(
      expect.objectContaining({ code: "CODEC_FAILED", message: expect.not.stringContaining("secret") }),
    );
});
