import { describe, expect, it } from "vitest";
import { jsonLine, jsonPieces, LongText, terminalSafe, terminalSafeLine } from "../src/terminal-safe.ts";

/** Everything a terminal might act on, but line feed and tab. */
const active = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

describe("terminalSafe", () => {
  it.each([
    ["a clipboard write (OSC 52)", "a\u001b]52;c;aGk=\u0007b", "ab"],
    ["a clipboard write ended by ST", "a\u001b]52;c;aGk=\u001b\\b", "ab"],
    ["a title (OSC 0)", "a\u001b]0;evil\u0007b", "ab"],
    ["a link (OSC 8)", "\u001b]8;;https://evil\u0007text\u001b]8;;\u0007", "text"],
    ["DCS", "a\u001bP1$r0m\u001b\\b", "ab"],
    ["APC", "a\u001b_payload\u001b\\b", "ab"],
    ["PM and SOS", "a\u001b^x\u001b\\b\u001bXy\u001b\\c", "abc"],
    ["a color", "\u001b[31mred\u001b[0m", "red"],
    ["a question to the terminal (CSI 6n)", "a\u001b[6nb", "ab"],
    ["clearing the screen", "a\u001b[2J\u001b[Hb", "ab"],
    ["a private mode", "a\u001b[?2004hb", "ab"],
    ["a full reset (ESC c)", "a\u001bcb", "ab"],
    ["a character set (ESC ( 0)", "a\u001b(0b", "ab"],
    ["an OSC without an end", "a\u001b]0;title text that goes on", "a0;title text that goes on"],
    ["a CSI without an end", "a\u001b[", "a"],
    ["a lone ESC at the end", "a\u001b", "a"],
    ["8-bit CSI", "a\u009b31mb", "ab"],
    ["8-bit OSC", "a\u009d0;evil\u009cb", "ab"],
    ["8-bit DCS", "a\u0090x\u009cb", "ab"],
    ["all of C1", "a\u0080\u0085\u008d\u009ab", "ab"],
    ["bell, backspace, delete and NUL", "a\u0007\u0008\u007f\u0000b", "ab"],
    ["a carriage return that would overwrite", "shown\rhidden", "shownhidden"],
    ["turned writing direction", "a\u202eb\u2066c\u200fd\u061c", "abcd"],
    ["nested introducers", "\u001b\u001b]0;x\u0007[31m", "[31m"],
    ["separators that break lines elsewhere", "a\u2028b\u2029c", "a\nb\nc"],
  ])("takes out %s", (_, text, expected) => {
    const safe = terminalSafe(text);
    expect(active.test(safe)).toBe(false);
    expect(safe.replace("[31m", "")).toBe(expected.replace("[31m", ""));
  });

  it("leaves ordinary text as it is", () => {
    const text = "Zeile 1\n\tüñí 漢字 🙂 👩‍👩‍👧 [31m ]52;c;";
    expect(terminalSafe(text)).toBe(text);
    expect(terminalSafeLine("a\n\tb")).toBe("a b");
  });

  it("is safe however often a sequence begins and never ends", () => {
    for (const piece of ["\u001b]", "\u009d", "\u001bP", "\u0090", "\u001b[", "\u001b", "\u001b]0;x"]) {
      const text = piece.repeat(200_000);
      // A quadratic expression needs minutes here, and the test ends before.
      expect(active.test(terminalSafe(text))).toBe(false);
    }
  });
});

describe("jsonLine", () => {
  it("writes what a terminal would act on as escapes and keeps the value", () => {
    const value = { text: "\u001b[31m \u009b31m \u007f \u202e \u2028 \u0000 ü 漢" };
    const line = jsonLine(value);
    expect(active.test(line)).toBe(false);
    expect(line).not.toContain("\u2028");
    expect(JSON.parse(line)).toEqual(value);
  });
});

describe("jsonPieces", () => {
  it.each([
    [{}],
    [{ kind: "a", none: undefined, nothing: null, list: [], deep: { list: [1, { b: [2] }] } }],
    [{ list: [1, undefined, null, "\u009b31m", [2, 3], { c: 4 }], "k\u2028": "x" }],
  ])("are the same text: %j", (value) => {
    expect([...jsonPieces(value)].join("")).toBe(jsonLine(value));
  });

  it("hold one element of a list each, so that no piece is longer than the longest", () => {
    const value = { kind: "context", messages: Array.from({ length: 1000 }, () => "x".repeat(1000)) };
    expect(Math.max(...[...jsonPieces(value)].map((piece) => piece.length))).toBeLessThan(1010);
  });

  // A provider that wants one message a turn gets all blocks of a long monologue in one.
  it("are no longer where the list lies deeper", () => {
    const content = Array.from({ length: 1000 }, () => ({ type: "text", text: "x".repeat(1000) }));
    const value = { kind: "context", messages: [{ role: "user", content }] };
    const pieces = [...jsonPieces(value)];
    expect(pieces.join("")).toBe(jsonLine(value));
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(1010);
  });

  it("make one text of a long one", () => {
    const parts = ["a\n", "\u009b31m", "", "\ud800", 'b"'];
    const pieces = [...jsonPieces({ messages: [new LongText(() => parts)] })];
    expect(pieces.join("")).toBe(jsonLine({ messages: [parts.join("")] }));
    expect([...jsonPieces([new LongText(() => [])])].join("")).toBe('[""]');
  });
});
