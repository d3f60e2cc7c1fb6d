import { describe, expect, it } from "vitest";
import { draftsFingerprint, headAfter, linkRecords, prepareDrafts, serializeRecord } from "../src/prepare-drafts.ts";
import { stateFingerprint } from "../src/stated-fingerprint.ts";
import { isSideRecord } from "../src/is-side-record.ts";
import { throughlineDraft } from "../src/throughline-record.ts";
import type { AppendDraft } from "@throughline/core";
import { defaultStoreLimits } from "../src/store-capabilities.ts";

function prepareOptions() {
  let count = 0;
  return {
    ids: { next: () => `id-${++count}` },
    clock: { nowMs: () => 1_700_000_000_000, sleep: async () => {} },
    limits: defaultStoreLimits,
  };
}

const prepare = (drafts: readonly AppendDraft[]) => prepareDrafts(drafts, prepareOptions());
const user = { type: "message", message: { role: "user", content: "hi" } };

describe("linkRecords", () => {
  it("chains main records and hangs side records on the head", () => {
    const linked = linkRecords(prepare([throughlineDraft("turn", {}), user, throughlineDraft("call", {}), user]), "h");
    expect(linked.map(({ record, side }) => [record.id, record.parentId, side])).toEqual([
      ["id-1", "h", true],
      ["id-2", "h", false],
      ["id-3", "id-2", true],
      ["id-4", "id-2", false],
    ]);
    expect(headAfter(linked, "h")).toBe("id-4");
    expect(headAfter(linkRecords(prepare([throughlineDraft("note", {})]), "h"), "h")).toBe("h");
  });

  it("writes type, id, parentId, timestamp, then the caller's fields in their order", () => {
    const [linked] = linkRecords(
      prepare([{ message: { role: "user", content: "hi" }, type: "message", z: 1, a: 2 }]),
      null,
    );
    expect(linked?.text).toBe(
      '{"type":"message","id":"id-1","parentId":null,"timestamp":"2023-11-14T22:13:20.000Z","message":{"role":"user","content":"hi"},"z":1,"a":2}',
    );
  });

  it("keeps the four fields in front of a field named like a number", () => {
    const [linked] = linkRecords(prepare([{ type: "custom", customType: "x", 0: "zero" }]), "h");
    expect(linked?.text).toMatch(
      /^\{"type":"custom","id":"id-1","parentId":"h","timestamp":"[^"]+","0":"zero","customType":"x"\}$/,
    );
    const [bare] = linkRecords(prepare([{ type: "x" }]), null);
    expect(JSON.parse(bare?.text ?? "")).toEqual(bare?.record);
  });

  it("keeps a given id, parent and time", () => {
    const [linked] = linkRecords(
      prepare([{ ...user, id: "mine", parentId: "p", timestamp: "2026-02-01T16:10:50.414Z" }]),
      "h",
    );
    expect(linked?.record).toMatchObject({ id: "mine", parentId: "p", timestamp: "2026-02-01T16:10:50.414Z" });
    expect(linked?.tsMs).toBe(Date.parse("2026-02-01T16:10:50.414Z"));
  });

  it.each([
    '{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-01T16:10:50.414Z","n":[1.0,1e3,-0,9007199254740993,"\\u00e9","\\ud800"],"n":2}',
  ])("leaves a source as it is: %s", (source) => {
    const [linked] = linkRecords(prepare([{ source }]), "h");
    expect(linked?.text).toBe(source);
    expect(linked?.record).toMatchObject({ id: "a", parentId: null });
  });

  it("keeps source and meaning apart where the line is not the record", () => {
    const record = {
      type: "custom",
      customType: "throughline.unparsed",
      id: "x",
      parentId: "h",
      timestamp: "1970-01-01T00:00:00.000Z",
    };
    const [linked] = linkRecords(prepare([{ source: new Uint8Array([0xff]), record }]), "h");
    expect(linked).toMatchObject({
      side: true,
      isSourceCanonical: false,
      text: JSON.stringify({
        type: "custom",
        id: "x",
        parentId: "h",
        timestamp: record.timestamp,
        customType: record.customType,
      }),
    });
  });
});

describe("prepareDrafts", () => {
  it("refuses what is no draft at all, by its index", () => {
    const noDrafts = [null, 5, [user], { source: 5 }, { source: 5, record: { ...user, id: "r1" } }];
    for (const draft of noDrafts as unknown as readonly AppendDraft[]) {
      const invalid = expect.objectContaining({ code: "RECORD_INVALID", details: { index: 1 } });
      expect(() => prepare([user, draft])).toThrow(invalid);
    }
  });

  it.each([
    [{ type: "" }, "type must be"],
    [{ type: "message", seq: 4 }, "seq is assigned"],
    [{ type: "message", _tl: {} }, "reserved"],
    [{ type: "message", id: "" }, "id must be"],
    [{ type: "message", id: "a\u0007" }, "id must be"],
    [{ type: "message", id: "a\ud800" }, "id must be"],
    [{ type: "mess\u0000age" }, "type must be"],
    [{ type: "message", id: "a", parentId: "a" }, "own id"],
    [{ type: "message", timestamp: "yesterday" }, "not an ISO time"],
    [{ source: "{" }, "not JSON"],
    [{ source: "[1]" }, "not a JSON object"],
    [{ source: '{"type":"message"}' }, "must state its id"],
    [{ source: new Uint8Array([1]) }, "needs a record"],
  ])("refuses %j", (draft, why) => {
    expect(() => prepare([user, draft as AppendDraft])).toThrow(
      expect.objectContaining({
        code: "RECORD_INVALID",
        message: expect.stringContaining(why),
        outcome: "not-applied",
        details: { index: 1 },
      }),
    );
  });

  it("refuses an id twice in a batch and a batch too long", () => {
    expect(() =>
      prepare([
        { ...user, id: "a" },
        { ...user, id: "a" },
      ]),
    ).toThrow(expect.objectContaining({ code: "RECORD_ID_TAKEN" }));
    expect(() => prepare(Array.from({ length: 1001 }, () => user))).toThrow(
      expect.objectContaining({ code: "BATCH_TOO_LARGE" }),
    );
  });

  it("refuses what JSON cannot hold", () => {
    const cycle: Record<string, unknown> = { type: "custom", customType: "x" };
    cycle["self"] = cycle;
    expect(() => prepare([cycle as AppendDraft])).toThrow(expect.objectContaining({ code: "RECORD_INVALID" }));
  });

  it("refuses a draft whose own toJSON makes something else of it", () => {
    for (const made of ["text", undefined, [1], { id: "another" }, { x: 1, parentId: null }, { _tl: { seq: 1 } }]) {
      const draft: AppendDraft = { type: "custom", customType: "x", toJSON: () => made };
      expect(() => prepare([draft])).toThrow(expect.objectContaining({ code: "RECORD_INVALID" }));
    }
  });

  it("escapes the two line separators that tear JSON lines in other readers", () => {
    const text = serializeRecord({ a: "x\u2028y\u2029z" });
    expect(text).toBe('{"a":"x\\u2028y\\u2029z"}');
    expect(JSON.parse(text)).toEqual({ a: "x\u2028y\u2029z" });
  });
});

describe("draftsFingerprint", () => {
  it("tells drafts apart by content and not by what the store fills in", () => {
    expect(draftsFingerprint([user])).toBe(draftsFingerprint([structuredClone(user)]));
    expect(draftsFingerprint([user])).not.toBe(draftsFingerprint([user, user]));
    expect(draftsFingerprint([{ source: "1" }])).not.toBe(draftsFingerprint([{ source: new Uint8Array([0x31]) }]));
  });

  it("stays what it was: stores keep hashes of it", () => {
    const drafts = [user, { source: "\u2028", record: { ...user, id: "r1" } }, { source: new Uint8Array([1]) }];
    const sourced =
      '{"source":"\u2028","record":{"type":"message","message":{"role":"user","content":"hi"},"id":"r1"}}';
    expect(draftsFingerprint(drafts)).toBe(`[${JSON.stringify(user)},${sourced},{"source":[1],"record":null}]`);
  });

  it("is what a caller states of one array of drafts", () => {
    const drafts = [user];
    stateFingerprint(drafts, "import 1");
    expect([draftsFingerprint(drafts), draftsFingerprint([...drafts])]).toEqual([
      "import 1",
      `[${JSON.stringify(user)}]`,
    ]);
  });

  it("names the draft that JSON cannot hold", () => {
    const cycle: Record<string, unknown> = { type: "message" };
    cycle["self"] = cycle;
    for (const draft of [cycle as AppendDraft, { type: "message", big: 1n }]) {
      const invalid = expect.objectContaining({ code: "RECORD_INVALID", details: { index: 1 } });
      expect(() => draftsFingerprint([user, draft])).toThrow(invalid);
    }
  });
});

describe("isSideRecord", () => {
  it.each([
    [{ type: "message" }, false],
    [{ type: "compaction" }, false],
    [{ type: "custom", customType: "other" }, false],
    [{ type: "checkpoint" }, true],
    [{ type: "label" }, true],
    [{ type: "message", appendMode: "side" }, true],
    [throughlineDraft("turn", {}), true],
    [throughlineDraft("edit", {}), false],
    [{ type: "custom", customType: "throughline.of-the-future" }, true],
    [{ type: "custom", customType: "throughline.redaction", data: { side: true } }, true],
    [{ type: "custom", customType: "throughline.redaction", data: { side: false } }, false],
  ])("says of %j: %s", (record, side) => {
    expect(isSideRecord(record)).toBe(side);
  });
});

describe("nesting", () => {
  const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
  const tooDeep = (index: number): unknown =>
    expect.objectContaining({ code: "RECORD_INVALID", outcome: "not-applied", details: { index } });

  it("is taken to 200 levels, and refused beyond them by what JSON makes of the draft", () => {
    expect(
      prepare([
        { ...user, x: nested(199) },
        { ...user, x: { toJSON: () => nested(199) } },
      ]),
    ).toHaveLength(2);
    for (const x of [nested(200), nested(5000), { toJSON: () => nested(200) }])
      expect(() => prepare([user, { ...user, x }])).toThrow(tooDeep(1));
    const base = { id: "a", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
    expect(() => prepare([{ source: JSON.stringify({ ...user, ...base, x: nested(200) }) }])).toThrow(tooDeep(0));
    expect(() => prepare([{ source: "x", record: { ...user, ...base, x: nested(200) } }])).toThrow(tooDeep(0));
  });

  it("of what is flattened on its way does not count", () => {
    expect(prepare([{ ...user, x: { deep: nested(300), toJSON: () => "flat" } }])[0]?.fieldsText).toContain('"flat"');
  });
});
