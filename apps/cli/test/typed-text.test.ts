import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { openRawInput } from "../src/chat/screen/raw-input.ts";
import { createKeyReader, createTypedText, type TypedText } from "../src/chat/screen/typed-text.ts";

interface Typing {
  readonly typed: TypedText;
  readonly names: (string | null)[];
  take(chunk: string): void;
}

function typing(): Typing {
  const typed = createTypedText(() => 24);
  const names: (string | null)[] = [];
  const reader = createKeyReader(
    (key) => {
      names.push(key.name ?? key.character);
      if (key.name !== "enter") typed.press(key);
    },
    (text) => typed.paste(text),
  );
  return { typed, names, take: (chunk) => reader.take(chunk) };
}

describe("a typed text", () => {
  it.each(["one line", "line one\nline two\t\u001b[31mred\u202e \u{1f600}", "a\n".repeat(20) + "\tmake:\n"])(
    "holds a paste wherever its bytes are cut",
    (text) => {
      const wanted = text.replace("\u001b[31m", "").replace("\u202e", "");
      const input = `x\u001b[200~${text.replaceAll("\n", "\r\n")}\u001b[201~y`;
      for (let at = 1; at < input.length; at++) {
        const { typed, take } = typing();
        take(input.slice(0, at));
        take(input.slice(at));
        expect(typed.text).toBe(`x${wanted}y`);
      }
    },
  );

  /** Types bytes into the terminal's input, cut before each of these places. */
  function fromBytes(bytes: Buffer, cuts: readonly number[]): TypedText {
    const stdin = new PassThrough();
    const typed = createTypedText(() => 24);
    const input = openRawInput({ stdin }, () => {});
    const reader = createKeyReader(
      (key) => typed.press(key),
      (text) => typed.paste(text),
    );
    input.readTo(reader);
    for (const [index, at] of [0, ...cuts].entries())
      stdin.emit("data", bytes.subarray(at, cuts[index] ?? bytes.length));
    input.close();
    return typed;
  }

  it(
    "is one text, a paste of 10,000 lines cut at 300 places, and a short one cut at each byte",
    { tags: ["slow"] },
    () => {
      const pasteOf = (lines: readonly string[]): Buffer =>
        Buffer.from(`\u001b[200~${lines.join("\r")}\u001b[201~`, "utf8");
      const lines = Array.from({ length: 10_000 }, (_, at) => `line ${at} 日本 👩‍👩‍👧‍👦 한글 e\u0301`);
      const long = pasteOf(lines);
      // A fixed sequence, so that a failure repeats.
      let state = 53;
      const cuts = Array.from({ length: 300 }, () => (state = (state * 48_271) % 2_147_483_647) % long.length);
      const typed = fromBytes(
        long,
        [...new Set(cuts)].toSorted((one, other) => one - other),
      );
      expect(typed.text === lines.join("\n")).toBe(true);
      expect(typed.shown).toBe("[paste #1 +10000 lines]");
      const short = pasteOf(lines.slice(0, 3));
      for (let at = 1; at < short.length; at++) expect(fromBytes(short, [at]).text).toBe(lines.slice(0, 3).join("\n"));
      const all = Array.from({ length: short.length - 1 }, (_, at) => at + 1);
      expect(fromBytes(short, all).text).toBe(lines.slice(0, 3).join("\n"));
    },
  );

  it("shows a long paste by its size, gives it in full, and forgets it with the text", () => {
    const { typed, take } = typing();
    const long = Array.from({ length: 10_000 }, (_, at) => `line ${at}`).join("\n");
    take(`see \u001b[200~${long}\u001b[201~`);
    expect(typed.shown).toBe("see [paste #1 +10000 lines]");
    expect(typed.text).toBe(`see ${long}`);
    expect(typed.submit()).toBe(true);
    take("[paste #1 +10000 lines]");
    expect(typed.text).toBe("[paste #1 +10000 lines]");
  });

  it("removes a whole character, also of several code points, and keeps the caret at its cell", () => {
    const { typed, take } = typing();
    take("a日👩‍👩‍👧‍👦한e\u0301");
    take("\u007f\u007f\u007f");
    expect(typed.text).toBe("a日");
    expect(typed.render(40)).toMatchObject({ rows: ["a日"], caret: { row: 0, column: 3 } });
    take("\u001b[D");
    expect(typed.render(40).caret.column).toBe(1);
  });

  it("keeps leading spaces, and makes a line of a backslash before Enter", () => {
    const { typed, take } = typing();
    take("  /etc/hosts\\");
    expect(typed.submit()).toBe(false);
    take("b");
    expect(typed.text).toBe("  /etc/hosts\nb");
  });

  it("takes no key that it does not know, and no direction mark", () => {
    const { typed, take } = typing();
    take("a\u202e\u001b[99;99~\u001b[1;1Zb");
    expect(typed.text).toBe("ab");
  });

  it("renders no row over its width, and says whether the caret is in its first or last row", () => {
    const { typed, take } = typing();
    take("words of some length that wrap 日本語日本語日本語");
    for (const columns of [1, 3, 8, 20]) {
      const { rows, isFirst, isLast } = typed.render(columns);
      expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(Math.max(8, columns));
      expect([isFirst, isLast]).toEqual([false, true]);
    }
    take("\u0001");
    expect(typed.render(200)).toMatchObject({ isFirst: true, isLast: true });
  });
});

describe("the key reader", () => {
  it("names the keys of old and new terminals alike", () => {
    const { names, take } = typing();
    for (const key of [
      "\u0003",
      "\u001b[99;5u",
      "\u001b\r",
      "\u001b[13;2u",
      "\r",
      "\u001b[A",
      "\u001bOA",
      "\u001b[1;3A",
      "é",
    ])
      take(key);
    expect(names).toEqual(["ctrl+c", "ctrl+c", "alt+enter", "shift+enter", "enter", "up", "up", "alt+up", "é"]);
  });
});
