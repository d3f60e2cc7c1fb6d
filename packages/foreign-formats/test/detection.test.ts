import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { detectForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { foreignFormatNames, writableFormatNames } from "../src/names.ts";
import { describe, expect, it } from "vitest";
import { corpusFolders, isDump } from "./corpus-files.ts";
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

/** Every file of the corpus with the format that it is of; null for a dump or a rendering that is no format's file. */
const corpus = corpusFolders().flatMap(([folder, name]) =>
  readdirSync(folder)
    .filter((file) => !file.endsWith(".sqlite"))
    .map((file) => [isDump(file) ? null : name, join(folder, file)] as const),
);

describe("the format of a file", () => {
  it.each(Object.keys(hostileFiles))("is nobody's: %s", (name) => {
    const content = hostileFiles[name] ?? "";
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    expect(verdicts(`/tmp/${name}`, bytes)).toEqual({});
  });

  it.skipIf(corpus.length === 0).each(corpus)("is %s and no other: %s", (name, path) => {
    const bytes = readFileSync(path);
    const found = verdicts(path, bytes);
    expect(Object.keys(found)).toEqual(name === null ? [] : [name]);
    const sample = { path, head: bytes.subarray(0, headBytes), isWhole: bytes.length <= headBytes };
    expect(detectForeignFormat(sample)?.name ?? null).toBe(name);
  });

  it("has a row in the table for each name, and a writer where it can be written", () => {
    expect([...foreignFormats.keys()]).toEqual([...foreignFormatNames]);
    const written = [...foreignFormats.values()].flatMap(({ name, writer }) => (writer === undefined ? [] : [name]));
    expect(written).toEqual([...writableFormatNames]);
  });
});
