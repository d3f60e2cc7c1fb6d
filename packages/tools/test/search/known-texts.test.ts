import { describe, expect, it } from "vitest";
import { KnownTexts } from "../../src/search/known-texts.ts";

describe("KnownTexts", () => {
  it("reads a text once, and a changed text again", () => {
    const known = new KnownTexts();
    const first = known.wordsOf("The compactions of agentSession");
    expect(known.wordsOf("The compactions of agentSession")).toBe(first);
    const changed = known.wordsOf("The compactions of [redacted]");
    expect(Array.from(changed.words, (word) => known.wordOf(word))).toEqual(["the", "compactions", "of", "redacted"]);
    expect(Array.from(first.names, (name) => known.wordOf(name))).toEqual(["agentsession"]);
    expect(known.stemOf(first.words[1] ?? 0)).toBe(known.stemOf(known.readWords("compacted").words[0] ?? 0));
  });

  it("lets go of texts that were not used for six million characters", { tags: ["slow"] }, () => {
    const known = new KnownTexts();
    const used = known.wordsOf("used again and again");
    const first = known.wordsOf("used once");
    const long = "word ".repeat(200_000);
    for (let text = 0; text < 8; text++) {
      known.wordsOf(`${text} ${long}`);
      expect(known.wordsOf("used again and again")).toBe(used);
    }
    expect(known.wordsOf("used once")).not.toBe(first);
  });

  it("states that its vocabulary is large", { tags: ["slow"] }, () => {
    const known = new KnownTexts();
    for (let from = 0; from < 200_000; from += 10_000)
      known.wordsOf(Array.from({ length: 10_000 }, (_, index) => `w${from + index}`).join(" "));
    expect(known.isLarge).toBe(false);
    known.wordsOf("onemore");
    expect(known.isLarge).toBe(true);
  });
});
