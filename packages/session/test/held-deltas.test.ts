import { isSilentReply, mayBecomeSilent } from "@throughline/compaction/internal";
import { describe, expect, it } from "vitest";
import { HeldDeltas } from "../src/held-deltas.ts";

describe("words that are held back", () => {
  it("are looked at as often as their length doubles, and none is lost when they are for the user after all", () => {
    for (const word of [" ", "NO_REPLY "]) {
      let characters = 0;
      let passed = "";
      const held = new HeldDeltas(
        (delta) => void (passed += delta.type === "text" ? delta.text : ""),
        (text, isWhole) => {
          characters += text.length;
          return isWhole ? isSilentReply(text) : mayBecomeSilent(text);
        },
      );
      for (let at = 0; at < 200_000; at++) held.take({ type: "text", text: word });
      held.take({ type: "text", text: "the end" });
      held.end();
      const whole = word.repeat(200_000) + "the end";
      expect(passed).toBe(word === " " ? whole : "");
      // Closely at first, then each doubling: a small multiple of the length.
      expect(characters).toBeLessThan(whole.length * 4 + 4096 * 4096);
    }
  });
});
