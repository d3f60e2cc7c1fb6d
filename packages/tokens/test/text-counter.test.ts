import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import type { CountMethod, TokenCounter } from "../src/token-counter.ts";
import type { TokenEstimator } from "@throughline/tokens";
import { hostileTexts } from "./hostile-texts.ts";

const anyModel = { provider: null, modelId: "any" };
const methods: readonly CountMethod[] = ["claude", "o200k_base", "cl100k_base", "heuristic"];

async function counting(method: CountMethod): Promise<{ counter: TokenCounter; estimator: TokenEstimator }> {
  const estimator = createTokenEstimator();
  return { counter: await estimator.counterFor(anyModel, { method }), estimator };
}

/** What is handed to the tokenizer, one token a character, so that the count says what was seen. */
async function seenSlices(text: string): Promise<{ tokens: number; slices: string[] }> {
  const slices: string[] = [];
  const estimator = createTokenEstimator({
    loadVocabulary: async () => (slice) => {
      slices.push(slice);
      return slice.length;
    },
  });
  const counter = await estimator.counterFor(anyModel);
  return { tokens: counter.countText(text), slices };
}

describe("slices", () => {
  it("hands over ordinary text whole, in slices of at most 1,024 characters", async () => {
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(500);
    const { slices, tokens } = await seenSlices(text);
    expect(slices.join("")).toBe(text);
    expect(Math.max(...slices.map((slice) => slice.length))).toBe(1024);
    expect(tokens).toBe(text.length);
  });

  it("knows a run of 200 without a break wherever it lies, and of 199 says nothing", async () => {
    for (const sign of ["a", "é", "0", "-", "{", "\u0000", "=a9"]) {
      for (let before = 0; before < 820; before += 7) {
        for (const [length, isRun] of [
          [200, true],
          [199, false],
        ] as const) {
          const run = sign.repeat(200).slice(0, length);
          const slice = `${"ab ".repeat(274).slice(0, before).trimEnd().padEnd(before)} ${run} `.padEnd(1024);
          const estimator = createTokenEstimator({ loadVocabulary: async () => (part) => part.length });
          const counter = await estimator.counterFor(anyModel);
          counter.countText(slice.repeat(3));
          expect(estimator.work.sampledSlices, `${sign} at ${before}`).toBe(isRun ? 1 : 0);
        }
      }
    }
  });

  it("never cuts a surrogate pair", async () => {
    for (const before of ["", "a"]) {
      const { slices } = await seenSlices(before + "😀 and so on, until the end. ".repeat(2000));
      expect(slices.length).toBeGreaterThan(10);
      expect(slices.every((slice) => slice.isWellFormed())).toBe(true);
    }
  });

  it.each(hostileTexts)("costs no more than its length allows: %s", async (_, text) => {
    const { counter, estimator } = await counting("claude");
    const tokens = counter.countText(text);
    const { work } = estimator;
    // 200 slices are cheap when pieces repeat; of the others a few thousand characters may be merged, in short runs.
    expect(tokens).toBeGreaterThan(0);
    expect(work.characters).toBeLessThanOrEqual(text.length);
    if (work.sampledSlices > 0) expect(work.characters).toBeLessThanOrEqual(8192);
    else expect(work.slices).toBeLessThanOrEqual(Math.ceil(text.length / 1023));
  });

  it.each(["letters without a break", "base64", "ideographs", "emoji"])(
    "samples %s to within 5 % of a whole count",
    { tags: ["slow"] },
    async (wanted) => {
      const text = (hostileTexts.find(([name]) => name === wanted)?.[1] ?? "").slice(0, 40_000);
      for (const method of methods) {
        const { counter, estimator } = await counting(method);
        const sampled = counter.countText(text);
        expect(estimator.work.sampledSlices).toBeGreaterThan(0);
        // Texts of two slices are always counted whole.
        let whole = 0;
        for (let start = 0; start < text.length; start += 2048)
          whole += counter.countText(text.slice(start, start + 2048));
        expect(Math.abs(sampled - whole) / whole, method).toBeLessThan(0.05);
      }
    },
  );
});

describe("vocabularies", () => {
  // The counts OpenAI's cookbook gives in "How to count tokens with tiktoken".
  it.each([
    ["antidisestablishmentarianism", 6, 6],
    ["2 + 2 = 4", 7, 7],
    ["お誕生日おめでとう", 9, 8],
  ])("count %s as their makers do, cl100k_base among them", async (text, cl100k, o200k) => {
    expect((await counting("cl100k_base")).counter.countText(text)).toBe(cl100k);
    expect((await counting("o200k_base")).counter.countText(text)).toBe(o200k);
  });

  it.each(methods)("%s takes special tokens for the text they are", async (method) => {
    const { counter } = await counting(method);
    for (const text of ["<|endoftext|>", "<EOT>", "<META_START>", "say <|endofprompt|> twice"]) {
      expect(counter.countText(text)).toBeGreaterThan(2);
    }
  });

  it("count any text, however it is made", { tags: ["slow"] }, async () => {
    const counters = await Promise.all(methods.map(async (method) => (await counting(method)).counter));
    const words = fc.constantFrom(
      "constructor",
      "__proto__",
      "\ud800",
      "\u0000",
      "\r\n",
      "字",
      "é",
      "<|im_end|>",
      "}}}}",
      "    ",
    );
    const text = fc
      .array(fc.oneof(words, fc.string({ unit: "binary" })), { maxLength: 20 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, (given) => {
        for (const counter of counters) {
          const tokens = counter.countText(given);
          expect(Number.isSafeInteger(tokens)).toBe(true);
          // A character is at most four bytes, and a byte at most one token.
          expect(tokens).toBeLessThanOrEqual(given.length * 4);
        }
      }),
    );
  });
});

describe("counting by length", () => {
  it.each([
    ["", 0],
    ["abc", 0],
    ["abcd", 1],
    ["abcdefg", 1],
    ["abcdefgh", 2],
  ])("gives a token for four characters of %j, rounded down", async (text, tokens) => {
    const { counter } = await counting("chars4");
    expect(counter.countText(text)).toBe(tokens);
  });
});

describe("counting by the kinds of characters", () => {
  it.each([
    ["", 0],
    ["word", 1],
    ["wonderful", 2],
    ["abcdefghijklmnopqrstuvwxyz", 7],
    ["two words", 2],
    ["1234567", 3],
    ["a, b", 3],
    ["    indented", 3],
    ["слово", 3],
    ["你好", 2],
    ["😀", 2],
  ])("gives %j its tokens", async (text, tokens) => {
    const { counter } = await counting("heuristic");
    expect(counter.countText(text)).toBe(tokens);
  });
});
