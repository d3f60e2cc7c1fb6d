import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "ai-tokenizer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import { vocabularyFiles, vocabularyModule } from "../../../tools/pack-vocabularies.ts";
import { hostileTexts } from "./hostile-texts.ts";

const names = ["claude", "o200k_base", "cl100k_base"] as const;

/** The counter under test and the development dependency that its vocabulary was made from. */
async function countersOf(name: (typeof names)[number]) {
  const counter = await createTokenEstimator().counterFor({ provider: null, modelId: "any" }, { method: name });
  const tokenizer = new Tokenizer(await import(`ai-tokenizer/encoding/${name}`), undefined, 8192);
  return {
    counted: (text: string) => counter.countText(text),
    expected: (text: string) => tokenizer.encode(text, "all").length,
  };
}

/** That tokenizer looks pieces up in an object, and takes the name of a member of every object for a token. */
function isMiscounted(text: string): boolean {
  return Object.getOwnPropertyNames(Object.prototype).some((name) => text.includes(name));
}

const samples = [
  "The quick brown fox doesn't jump over 12,345 lazy dogs; it's 3.14159 m away.\n\n\n\tfunction f(a, b) { return a + b; }\r\n",
  "Grüße, Wörter – naïve café 日本語のテキスト и русский текст 🎉👩‍👩‍👧 नमस्ते ‮rtl‬ \u0000\u001b[31m",
  '{"type":"message","id":"0192f","content":[{"type":"text","text":"<|endoftext|> <EOT> <META>"}]}',
  "a\ud800b \udfff lone surrogates",
  "ＦＵＬＬ ｗｉｄｔｈ ﬁ ligature e\u0301 combining \u200b zero width",
];

describe("the packed vocabularies", () => {
  it.each(Object.entries(vocabularyFiles))("are what the script makes: %s", (file, entry) => {
    const path = join(import.meta.dirname, "../src/vocabulary", file);
    expect(readFileSync(path, "utf8") === vocabularyModule(entry)).toBe(true);
  });

  it.each(names)("count as the tokenizer they were made from: %s", async (name) => {
    const { counted, expected } = await countersOf(name);
    // Longer than the shortcut of that tokenizer, which takes a text of less than ten characters whole.
    const texts = [...samples, ...hostileTexts.map(([, text]) => text.slice(0, 180))];
    for (const text of texts) expect(counted(text), JSON.stringify(text.slice(0, 60))).toBe(expected(text));
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 10, maxLength: 150 }), (text) => {
        fc.pre(!isMiscounted(text));
        expect(counted(text)).toBe(expected(text));
      }),
      { numRuns: 300 },
    );
  });
});
