import { createHeadSampler } from "../src/head-sampler.ts";
import { detectForeignFormat } from "@throughline/foreign-formats";
import type { FormatSample } from "../src/foreign-format.ts";
import { describe, expect, it } from "vitest";
import { foreignFormatNames } from "../src/names.ts";
import { isText, sampleTexts, textOf } from "./sample-texts.ts";

function sampled(bytes: Uint8Array, path = "/p/x.jsonl", chunkBytes = 256 * 1024): FormatSample {
  const sampler = createHeadSampler();
  for (let at = 0; at < bytes.length; at += chunkBytes)
    if (!sampler.push(bytes.subarray(at, at + chunkBytes))) return sampler.sample(path, false);
  return sampler.sample(path, true);
}

/** Every kind of character that a JSON text may hold. */
const words = 'The "log" says \\ nothing é\u2028 new.\n\u0001{[,]}';

describe("the sample of a file", () => {
  it.each([1, 2, 3, 7, 64, 1023, 1024, 1025, 4096])(
    "is JSON still, with long texts shortened, in chunks of %i",
    (size) => {
      for (let length = 1000; length < 1060; length++) {
        const value = { a: words.repeat(60).slice(0, length), b: [words.repeat(90)], "c\\": 'x"' };
        const { head, isWhole } = sampled(Buffer.from(JSON.stringify(value)), "/p/x.json", size);
        const read = JSON.parse(new TextDecoder().decode(head)) as typeof value;
        expect([isWhole, Object.keys(read), read["c\\"]]).toEqual([true, Object.keys(value), 'x"']);
        expect(value.a.startsWith(read.a.replace(/\uFFFD.*$/, ""))).toBe(true);
        expect(read.b[0]?.length).toBeLessThanOrEqual(1024);
      }
    },
  );

  it("is the file itself where no text is long, and its beginning where the file is", () => {
    const text = '# A "quotation mark" that\n> opens "nothing\n#### here\n';
    expect(sampled(Buffer.from(text))).toEqual({
      path: "/p/x.jsonl",
      head: new Uint8Array(Buffer.from(text)),
      isWhole: true,
    });
    const long = Buffer.from(text.repeat(5000));
    expect(sampled(long)).toMatchObject({ head: new Uint8Array(long.subarray(0, 64 * 1024)), isWhole: false });
  });

  it.each(foreignFormatNames)("tells a file of %s behind a byte order mark and a first text of 3 MB", (name) => {
    const sample = sampleTexts[name];
    const own = textOf(sample);
    if (isText(sample.path)) return expect(detectForeignFormat(sampled(Buffer.from(`\uFEFF${own}`)))?.name).toBe(name);
    const image = `"image":"data:image/png;base64,${"iVBORw0KGgo\\/".repeat(250_000)}",`;
    const at = own.indexOf("{") + 1;
    const text = `\uFEFF${own.slice(0, at)}${image}${own.slice(at)}`;
    // These two are rows of databases.
    const expected = name === "langgraph" || name === "cursor" ? undefined : name;
    expect(detectForeignFormat(sampled(Buffer.from(text), sample.path))?.name).toBe(expected);
  });
});
