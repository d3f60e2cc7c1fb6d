import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findRecordProblem } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { encodeLine } from "../src/decode-line.ts";
import { readTranscript, type ReadTranscript } from "./read-transcript.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];

function read(path: string): ReadTranscript {
  return readTranscript(readFileSync(join(corpus ?? "", path)));
}

/** What another implementation made of the same file: its records, the header left out. */
function goldenRecords(name: string): SessionRecord[] {
  const text = readFileSync(join(corpus ?? "", "golden", `${name}.v3.jsonl`), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line) as SessionRecord);
}

describe.skipIf(corpus === undefined)("real transcripts", () => {
  it.each(["before-compaction", "large-session"])("%s migrates to the records pi's own migration gave", (name) => {
    const { lines, found } = read(`pi/${name}.jsonl`);
    expect(lines.slice(1).map(({ record }) => record)).toEqual(goldenRecords(name));
    expect(found).toEqual(["VERSION_MIGRATED@1"]);
  });

  it.each(["before-compaction", "large-session", "tree-all-types"])(
    "%s of version 3 is canonical line by line",
    (name) => {
      const { lines, found } = read(`golden/${name}.v3.jsonl`);
      expect(found).toEqual([]);
      expect(lines.slice(1).every((line) => line.isSourceCanonical)).toBe(true);
      expect(lines.map(({ record }) => findRecordProblem(record)).filter((problem) => problem !== null)).toEqual([]);
      const golden = JSON.parse(readFileSync(join(corpus ?? "", "golden", `${name}.golden.json`), "utf8")) as {
        leaf?: string;
      };
      if (golden.leaf !== undefined) expect(lines.at(-1)?.headId).toBe(golden.leaf);
    },
  );

  it("every file comes back byte for byte from the sources", () => {
    for (const folder of ["pi", "golden", "openclaw-legacy-variants/agents/main/sessions"]) {
      for (const name of readdirSync(join(corpus ?? "", folder)).filter((entry) => entry.includes(".jsonl"))) {
        const bytes = readFileSync(join(corpus ?? "", folder, name));
        const { lines } = readTranscript(bytes);
        const joined = Buffer.concat(lines.flatMap(({ source }) => [encodeLine(source), Buffer.from("\n")]));
        expect(Buffer.compare(joined.subarray(0, bytes.length), bytes), name).toBe(0);
      }
    }
  });

  it("the odd sessions give these findings", () => {
    const folder = "openclaw-legacy-variants/agents/main/sessions";
    const found = readdirSync(join(corpus ?? "", folder))
      .filter((name) => name.includes(".jsonl"))
      .map((name) => [name.slice(0, 4), ...read(join(folder, name)).found]);
    expect(found.toSorted()).toEqual([
      ["4d35"],
      ["5138"],
      ["601b"],
      ["6da7", "TAIL_TORN@4"],
      ["937b", "ORPHAN_PARENT@3"],
      ["9b83"],
      ["9df0", "HEADER_MISSING@1"],
      ["a883", "DUPLICATE_ID@3"],
      ["af2d", "PARENT_MISSING@4"],
      ["bb77"],
      ["bd35", "RECORD_FLAT@2"],
      ["c5f2", "VERSION_MIGRATED@1", "RECORD_FLAT@2"],
      ["d48b", "LINE_MALFORMED@3"],
      ["de29", "VERSION_MIGRATED@1"],
    ]);
  });
});
