import { readFileSync } from "node:fs";
import { foreignFormats } from "@throughline/foreign-formats";
import type { ForeignFormatName } from "../src/names.ts";
import { describe, expect, it } from "vitest";
import { corpusFiles, isDump } from "./corpus-files.ts";
import { readUnits, refusals } from "./read-units.ts";

const files = [...foreignFormats.keys()].flatMap((name) =>
  corpusFiles(name, ".jsonl").map((path) => [name, path] as const),
);
const documents = [...foreignFormats.keys()].flatMap((name) =>
  [...corpusFiles(name, ".json"), ...corpusFiles(name, ".txt")]
    .filter((path) => !isDump(path))
    .map((path) => [name, path] as const),
);

describe.skipIf(files.length === 0)("a real transcript", () => {
  it.each(files)("of %s is read whole: %s", (name, path) => {
    const bytes = readFileSync(path);
    const session = readUnits(name, bytes, path);
    expect(session.findings.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(session.units).toBe(bytes.toString("utf8").trimEnd().split("\n").length);
    expect(session.headId === null).toBe(session.records.every(({ side }) => side));
  });

  it.each(files)("of %s is a conversation that every provider takes, wherever it is cut: %s", (name, path) => {
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    for (let count = 1; count <= lines.length; count++) {
      const session = readUnits(
        name,
        lines
          .slice(0, count)
          .map((line) => `${line}\n`)
          .join(""),
        path,
      );
      expect({ count, refused: refusals(session) }).toEqual({ count, refused: [] });
    }
  });

  it.each(smallest())("of %s that is cut at any byte loses the unit that is cut and no other: %s", (name, path) => {
    const bytes = readFileSync(path);
    const whole = readUnits(name, bytes, path);
    for (let size = 0; size <= bytes.length; size++) {
      const cut = readUnits(name, bytes.subarray(0, size), path);
      const complete = bytes.subarray(0, size).filter((byte) => byte === 0x0a).length;
      expect(cut.records.slice(0, complete).map(({ record }) => record)).toEqual(
        whole.records.slice(0, complete).map(({ record }) => record),
      );
    }
  });
});

describe.skipIf(documents.length === 0)("a real document", () => {
  it.each(documents)("of %s is read whole: %s", (name, path) => {
    const session = readUnits(name, readFileSync(path), path);
    expect(session.findings.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(session.headId === null).toBe(session.records.every(({ side }) => side));
  });

  it.each(documents)("of %s is a conversation that every provider takes, wherever it is cut: %s", (name, path) => {
    const bytes = readFileSync(path);
    const step = Math.max(1, Math.floor(bytes.length / 400));
    for (let size = 0; size <= bytes.length; size += step) {
      const session = readUnits(name, bytes.subarray(0, size), path);
      expect({ size, refused: refusals(session) }).toEqual({ size, refused: [] });
    }
  });
});

/** Of each format the smallest file. */
function smallest(): readonly (readonly [ForeignFormatName, string])[] {
  const byFormat = Map.groupBy(files, ([name]) => name);
  return [...byFormat.values()].flatMap((group) => {
    const [first] = group.toSorted((one, other) => readFileSync(one[1]).length - readFileSync(other[1]).length);
    return first === undefined ? [] : [first];
  });
}
