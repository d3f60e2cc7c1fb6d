import { readFileSync } from "node:fs";
import type { SessionRecord } from "@throughline/core";
import { derivedFromOf, sourceFormatOf } from "../src/record-origin.ts";
import { findRecordProblem } from "../src/find-record-problem.ts";
import { isFromNewerVersion, throughlineKind, throughlineRecordRules } from "../src/throughline-record.ts";
import { isSideRecord } from "../src/is-side-record.ts";
import { describe, expect, it } from "vitest";
import { isKnownRecordType } from "../src/record-types.ts";
import { textCopies } from "../src/text-copies.ts";

const document = readFileSync(new URL("../../../docs/formats/records.md", import.meta.url), "utf8");

/** The cells of the rows of a table, without the back quotes. */
function rowsOf(heading: string): readonly (readonly string[])[] {
  const [, behind = ""] = document.split(heading);
  const lines = behind.split("\n");
  const first = lines.findIndex((line) => line.startsWith("| --- "));
  const end = lines.findIndex((line, at) => at > first && !line.startsWith("|"));
  return lines
    .slice(first + 1, end)
    .map((line) => line.split(" | ").map((cell) => cell.replaceAll(/[|`]/g, "").trim()));
}

function examples(): readonly SessionRecord[] {
  const [, block = ""] = /```jsonl\n([^]*?)```/.exec(document) ?? [];
  return block
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as SessionRecord);
}

describe("docs/formats/records.md", () => {
  it("shows a line of each type and kind, which is what the code takes it for", () => {
    const records = examples();
    for (const record of records) {
      expect(findRecordProblem(record), JSON.stringify(record)).toBeNull();
      expect(isFromNewerVersion(record)).toBe(false);
      expect(Object.keys(record).slice(0, 4)).toEqual(["type", "id", "parentId", "timestamp"]);
    }
    const kinds = records.flatMap((record) => throughlineKind(record) ?? []);
    expect(new Set(kinds)).toEqual(new Set(Object.keys(throughlineRecordRules)));
    const [, typeTable = ""] = document.split("| type | further fields |");
    const types = typeTable
      .split("\n\n")[0]
      ?.split("\n")
      .flatMap((line) => [...(line.split(" | ")[0] ?? "").matchAll(/`([a-z_]+)`/g)].map(([, name = ""]) => name));
    expect(types?.length).toBeGreaterThan(10);
    expect(new Set(types)).toEqual(new Set(records.map(({ type }) => type)));
    expect(types?.every((type) => isKnownRecordType(type))).toBe(true);
  });

  it("says of each kind of ours what the code says: version, critical, side", () => {
    const rules = rowsOf("| kind | v | critical | side |").map(([kind = "", v, critical, side]) => [
      kind,
      { version: Number(v), critical: critical === "yes", side: kind === "redaction" ? false : side === "yes" },
    ]);
    expect(Object.fromEntries(rules)).toEqual(throughlineRecordRules);
    for (const record of examples()) {
      const kind = throughlineKind(record);
      const isSide = Object.fromEntries(rules)[kind ?? ""]?.side ?? isSideRecord(record);
      expect(isSideRecord(record)).toBe(isSide);
    }
  });

  it("lists everything that copies text as the code does", () => {
    const rows = rowsOf("| what | reference | fate |").map(([what, reference, fate]) => ({ what, reference, fate }));
    expect(rows).toEqual(textCopies);
  });

  it("shows a derived record behind the record that has its source", () => {
    const records = examples();
    const derived = records.filter((record) => derivedFromOf(record) !== null);
    expect(derived).toHaveLength(1);
    const first = records.find(({ id }) => id === derivedFromOf(derived[0] as SessionRecord)?.id);
    expect([first, derived[0]].map((record) => sourceFormatOf(record as SessionRecord))).toEqual([
      "claude-code",
      "claude-code",
    ]);
  });
});
