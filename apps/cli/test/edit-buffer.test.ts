import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  emptyBuffer,
  eraseTo,
  insertText,
  moveDown,
  moveEnd,
  moveHome,
  moveLeft,
  moveRight,
  moveUp,
  moveWordLeft,
  moveWordRight,
} from "../src/chat/edit-buffer.ts";
import { layoutEdit } from "../src/chat/edit-layout.ts";
import { createInputHistory } from "../src/chat/input-history.ts";
import { temporaryDirectory } from "./harness.ts";

const family = "👩‍👩‍👧";

describe("what is being typed", () => {
  it("is moved over and erased by whole characters", () => {
    const typed = insertText(insertText(emptyBuffer, `a${family}`), "é한");
    expect(moveLeft(moveLeft(moveLeft(typed))).caret).toBe(1);
    expect(eraseTo(eraseTo(eraseTo(typed, moveLeft), moveLeft), moveLeft).text).toBe("a");
    expect(moveRight({ text: typed.text, caret: 1 }).caret).toBe(1 + family.length);
    expect(moveLeft(emptyBuffer)).toEqual(emptyBuffer);
    expect(moveRight(typed)).toEqual(typed);
  });

  it("is moved over by words and lines, and keeps the column between lines", () => {
    const text = "one two\nthree\nfour five";
    const end = { text, caret: text.length };
    expect(moveWordLeft(end).caret).toBe(text.indexOf("five"));
    expect(moveWordRight({ text, caret: 0 }).caret).toBe(3);
    expect(moveHome(end).caret).toBe(text.indexOf("four"));
    expect(moveEnd({ text, caret: 1 }).caret).toBe(7);
    const up = moveUp(end);
    expect(up?.caret).toBe(text.indexOf("\nfour"));
    expect(moveUp({ text, caret: 2 })).toBeNull();
    expect(moveDown({ text, caret: 6 })?.caret).toBe(text.indexOf("three") + 5);
    expect(moveDown(end)).toBeNull();
    expect(eraseTo(end, moveHome).text).toBe("one two\nthree\n");
  });
});

describe("its rows", () => {
  const layout = (text: string, caret = text.length, columns = 12, mostRows = 10) =>
    layoutEdit({ text, caret }, { prompt: "> ", columns, mostRows });

  it("break at the width and at line ends, the last column free", () => {
    expect(layout("")).toEqual({ rows: ["> "], caretRow: 0, caretColumn: 2 });
    expect(layout("123456789")).toEqual({ rows: ["> 123456789", "  "], caretRow: 1, caretColumn: 2 });
    expect(layout("12345678")).toEqual({ rows: ["> 12345678"], caretRow: 0, caretColumn: 10 });
    expect(layout("ab\ncd", 1)).toEqual({ rows: ["> ab", "  cd"], caretRow: 0, caretColumn: 3 });
    expect(layout("ab\n")).toEqual({ rows: ["> ab", "  "], caretRow: 1, caretColumn: 2 });
  });

  it("count wide characters as two columns and never part one", () => {
    const { rows } = layout("한글한글한글");
    expect(rows).toEqual(["> 한글한글", "  한글"]);
    expect(layout(`${family}${family}`).caretColumn).toBe(6);
  });

  it("are shown around the caret when there are too many", () => {
    const text = Array.from({ length: 30 }, (_, index) => `line ${index}`).join("\n");
    const shown = layout(text, 0, 40, 5);
    expect(shown.rows).toHaveLength(5);
    expect(shown).toMatchObject({ caretRow: 0, caretColumn: 2 });
    const last = layout(text, text.length, 40, 5);
    expect(last.rows.at(-1)).toBe("  line 29");
    expect(last.caretRow).toBe(4);
  });
});

describe("what was submitted before", () => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());

  it("comes back in order, of earlier terminals too, and lies in a file of its owner's", () => {
    const path = join(directory.path, "deep", "history.jsonl");
    const first = createInputHistory(path);
    for (const text of ["one", "two\nlines", "two\nlines", " secret", "", "x".repeat(20_000)]) first.add(text);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const second = createInputHistory(path);
    expect([second.older("unsent"), second.older(""), second.older("")]).toEqual(["two\nlines", "one", null]);
    expect([second.newer(), second.newer(), second.newer()]).toEqual(["two\nlines", "unsent", null]);
  });

  it("survives a file that was cut, and is brought down to what is kept", () => {
    const path = join(directory.path, "long.jsonl");
    mkdirSync(directory.path, { recursive: true });
    const lines = Array.from({ length: 2500 }, (_, index) => JSON.stringify(`line ${index}`));
    writeFileSync(path, `${lines.join("\n")}\n{"no text":1}\n"cut`);
    expect(createInputHistory(path).older("")).toBe("line 2499");
    expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(1000);
  });
});
