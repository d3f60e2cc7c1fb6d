import { derivedFromOf, derivedRecordId, sourceFormatOf } from "../src/record-origin.ts";
import {
  isFromNewerVersion,
  throughlineDraft,
  type ThroughlineRecordKind,
  throughlineRecordRules,
} from "../src/throughline-record.ts";
import { describe, expect, it } from "vitest";
import { systemClock, systemRecordIds } from "../src/node/system-ports.ts";
import { prepareDrafts } from "../src/prepare-drafts.ts";
import { defaultStoreLimits } from "../src/store-capabilities.ts";
import type { AppendDraft } from "../src/record-draft.ts";

const prepare = (draft: AppendDraft): unknown =>
  prepareDrafts([draft], { ids: systemRecordIds, clock: systemClock, limits: defaultStoreLimits });

const hostile: readonly unknown[] = [
  "",
  "Claude",
  "claude code",
  "../../etc/passwd",
  "\u001b[2J",
  "a\u0000",
  "x".repeat(65),
  "-a",
  "__proto__",
  5,
  null,
  {},
  ["claude-code"],
];

describe("the format of a source", () => {
  it.each(["claude-code", "openai-agents", "gateway.anthropic", "a", "0x"])("%s is one", (sourceFormat) => {
    expect(sourceFormatOf({ sourceFormat })).toBe(sourceFormat);
    expect(() => prepare({ type: "x.y", sourceFormat })).not.toThrow();
  });

  it.each(hostile)("%j is none: a new record with it is refused, and a line that came in keeps it", (sourceFormat) => {
    expect(sourceFormatOf({ sourceFormat })).toBeNull();
    expect(() => prepare({ type: "x.y", sourceFormat })).toThrow(
      expect.objectContaining({ code: "RECORD_INVALID", outcome: "not-applied" }),
    );
    const record = { type: "x.y", id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", sourceFormat };
    expect(() => prepare({ source: JSON.stringify(record) })).not.toThrow();
    expect(() => prepare({ source: "a line", record })).not.toThrow();
  });
});

describe("a derived record", () => {
  const made = { type: "x.y", id: "r1~d2", derivedFrom: { id: "r1", index: 2 } };

  it("has an id made of the first record's", () => {
    expect(derivedRecordId({ id: "r1", index: 2 })).toBe(made.id);
    expect(derivedFromOf(made)).toEqual(made.derivedFrom);
    expect(() => prepare(made)).not.toThrow();
  });

  it.each([
    { ...made, id: "r1~d1" },
    { ...made, id: "r2~d2" },
    { type: "x.y", derivedFrom: { id: "r1", index: 1 } },
    { ...made, id: "r1~d0", derivedFrom: { id: "r1", index: 0 } },
    { ...made, id: "r1~d1.5", derivedFrom: { id: "r1", index: 1.5 } },
    { ...made, derivedFrom: null },
    { ...made, derivedFrom: "r1" },
    { ...made, id: "~d2", derivedFrom: { id: "", index: 2 } },
    { ...made, derivedFrom: { index: 2 } },
  ])("is refused where its fields do not agree: %j", (draft) => {
    expect(derivedFromOf(draft)).toBeNull();
    expect(() => prepare(draft)).toThrow(expect.objectContaining({ code: "RECORD_INVALID" }));
  });
});

describe("a kind of ours of a higher version", () => {
  it.each(Object.keys(throughlineRecordRules) as ThroughlineRecordKind[])(
    "%s: is taken, and stops a context only where it is critical",
    (kind) => {
      const draft = throughlineDraft(kind, {});
      const later = { id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", ...draft, v: draft.v + 1 };
      expect(() => prepare(later)).not.toThrow();
      expect(isFromNewerVersion({ ...later, critical: false })).toBe(throughlineRecordRules[kind].critical);
      expect(isFromNewerVersion({ ...later, critical: true })).toBe(true);
      expect(isFromNewerVersion({ ...later, v: draft.v })).toBe(false);
    },
  );
});
