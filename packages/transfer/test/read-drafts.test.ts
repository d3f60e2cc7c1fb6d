import { PassThrough, Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readDrafts } from "../src/read-drafts.ts";

const never = new AbortController().signal;

async function read(input: string | Uint8Array, chunkBytes = 65_536): Promise<unknown[]> {
  const bytes = typeof input === "string" ? Buffer.from(input) : input;
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
  const found: unknown[] = [];
  for await (const { line, draft } of readDrafts(Readable.from(chunks), never)) found.push([line, draft["text"]]);
  return found;
}

const draft = (text: string): string => JSON.stringify({ type: "note", text });

describe("readDrafts", () => {
  it("ends lines at a line feed and nowhere else", async () => {
    const texts = ["x\u2028y", "x\u2029y", "a\u0085b", "vertical \u000b", "plain"];
    expect(await read(texts.map(draft).join("\n"))).toEqual(texts.map((text, index) => [index + 1, text]));
    expect(await read(`${draft("one").replace("}", "\r}")}\n${draft("two")}\r\n`)).toEqual([
      [1, "one"],
      [2, "two"],
    ]);
  });

  it("reads the same in chunks of one byte", async () => {
    const text = `\uFEFF${draft("ü\u2028漢🙂")}\n\n  \n${draft("two")}\n${draft("without an end")}`;
    const expected = [
      [1, "ü\u2028漢🙂"],
      [4, "two"],
      [5, "without an end"],
    ];
    expect(await read(text)).toEqual(expected);
    expect(await read(text, 1)).toEqual(expected);
  });

  it("reads nothing from nothing", async () => {
    expect(await read("")).toEqual([]);
    expect(await read("\n\n \n")).toEqual([]);
  });

  it("takes a line of 16 MiB and refuses a longer one, also one that never ends", { tags: ["slow"] }, async () => {
    const limit = 16 * 1024 * 1024;
    const frame = draft("").length;
    const longest = draft("x".repeat(limit - frame));
    expect(await read(`${longest}\n`)).toHaveLength(1);
    await expect(read(`${draft("first")}\n${draft("x".repeat(limit - frame + 1))}\n`)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      details: { line: 2 },
    });
    let produced = 0;
    const endless = new Readable({
      read() {
        produced += 1;
        this.push(Buffer.alloc(1024 * 1024, 0x78));
      },
    });
    await expect(readDrafts(endless, never).next()).rejects.toThrow("longer than 16777216 bytes");
    expect(produced).toBeLessThan(30);
    expect(endless.destroyed).toBe(true);
  });

  it.each<[string, string | Uint8Array, RegExp]>([
    ["text that is no JSON", '{"type":"x"', /not JSON/],
    ["two values", "{} {}", /not JSON/],
    ["a list", "[]", /not an object/],
    ["null", "null", /not an object/],
    ["no type", "{}", /type is not text/],
    ["a type that is no text", '{"type":1}', /type is not text/],
    ["a seq", '{"type":"x","seq":1}', /seq is assigned by the store/],
    ["our reserved field", '{"type":"x","_tl":{}}', /_tl is reserved/],
    ["a type with a control character", '{"type":"x\\u0007"}', /type must be a short text/],
    ["a time that is none", '{"type":"x","timestamp":"soon"}', /timestamp "soon" is not an ISO time/],
    ["a record that is its own parent", '{"type":"x","id":"a","parentId":"a"}', /parentId is the record's own id/],
    ["an id that is no text", '{"type":"x","id":1}', /id is not text/],
    ["a parent that is no text", '{"type":"x","parentId":1}', /parentId is not text/],
    ["a message without content", '{"type":"message","message":{"role":"user"}}', /message\.content is neither/],
    [
      "a block that is none",
      '{"type":"message","message":{"role":"user","content":[1]}}',
      /message\.content\.0 is not an object/,
    ],
    ["a compaction without a summary", '{"type":"compaction"}', /summary is not text/],
    ["nesting beyond 200", `{"type":"x","a":${"[".repeat(200)}${"]".repeat(200)}}`, /nested more than 200/],
    ["nesting that would end the process", `{"type":"x","a":${"[".repeat(5_000_000)}`, /nested more than 200/],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /not UTF-8/],
  ])("refuses %s with its line", async (_, line, message) => {
    const input = Buffer.concat([
      Buffer.from(`${draft("one")}\n\n`),
      Buffer.from(line),
      Buffer.from(`\n${draft("three")}\n`),
    ]);
    await expect(read(input)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      outcome: "not-applied",
      message: expect.stringMatching(message),
      details: expect.objectContaining({ line: 3 }),
    });
  });

  it("takes nesting up to 200 and brackets in texts", async () => {
    expect(
      await read(`{"type":"x","text":${JSON.stringify('[{\\"'.repeat(500))},"a":${"[".repeat(199)}${"]".repeat(199)}}`),
    ).toHaveLength(1);
  });

  it("stops waiting when it is aborted", async () => {
    const input = new PassThrough();
    const abort = new AbortController();
    const next = readDrafts(input, abort.signal).next();
    abort.abort(new Error("enough"));
    await expect(next).rejects.toMatchObject({ code: "ABORTED", cause: { message: "enough" } });
    expect(input.destroyed).toBe(true);
  });
});
