import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { detectForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { foreignFormatNames, writableFormatNames } from "@throughline/foreign-formats/names";
import { describe, expect, it } from "vitest";
import { corpusFolder } from "./corpus-files.ts";
import { hostileFiles } from "./hostile-files.ts";

const headBytes = 64 * 1024;

function verdicts(path: string, bytes: Uint8Array): Readonly<Record<string, string>> {
  const sample = { path, head: bytes.subarray(0, headBytes), isWhole: bytes.length <= headBytes };
  const found = [...foreignFormats.values()].flatMap((format) => {
    const match = format.detect(sample);
    return match === null ? [] : [[format.name, match] as const];
  });
  return Object.fromEntries(found);
}

/** Every example file with the format that it is of; those of databases and of what is not read are told elsewhere. */
const corpus = foreignFormatNames.flatMap((name) => {
  const folder = corpusFolder(name);
  return folder === null ? [] : readdirSync(folder).map((file) => [name, join(folder, file)] as const);
});

describe("the format of a file", () => {
  it.each(Object.keys(hostileFiles))("is nobody's: %s", (name) => {
    const content = hostileFiles[name] ?? "";
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    expect(verdicts(`/tmp/${name}`, bytes)).toEqual({});
  });

  it.skipIf(corpus.length === 0).each(corpus)("is %s and no other: %s", (name, path) => {
    if (path.endsWith(".sqlite")) return;
    const bytes = readFileSync(path);
    const found = verdicts(path, bytes);
    expect(Object.keys(found)).toEqual([name]);
    expect(detectForeignFormat({ path, head: bytes.subarray(0, headBytes), isWhole: true })?.name).toBe(name);
  });

  it("has a row in the table for each name, and a writer where it can be written", () => {
    expect([...foreignFormats.keys()]).toEqual([...foreignFormatNames]);
    const written = [...foreignFormats.values()].flatMap(({ name, writer }) => (writer === undefined ? [] : [name]));
    expect(written).toEqual([...writableFormatNames]);
  });
});
