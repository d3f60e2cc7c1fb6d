/* oxlint-disable no-control-regex -- control characters are what is looked for */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createHighlighter } from "../src/chat/screen/highlight.ts";
import type { MarkdownOptions } from "../src/chat/screen/markdown-inline.ts";
import { MarkdownStream } from "../src/chat/screen/markdown-stream.ts";
import { type Frame, Screen } from "../src/chat/screen/screen.ts";
import { signsOf } from "../src/chat/screen/signs.ts";
import { createStyles } from "../src/chat/screen/styles.ts";
import { createScreenJudge, type ScreenJudge } from "./screens.ts";

const root = join(import.meta.dirname, "../../..");
const styles = createStyles(true);
const highlighter = createHighlighter(styles);
await Promise.all(["bash", "json", "python", "sql", "ts", "yaml"].map((name) => highlighter.load(name)));
const options: MarkdownOptions = { styles, signs: signsOf({}), hasLinks: false, highlighter };

/** A reply with everything that Markdown has, and with what cannot be read as it. */
const mixed = `# Plan for 日本語 👩‍👩‍👧‍👦

Some **bold words** and *italics*, \`code\`, a [link](https://example.com/a?b=c) and <b>HTML</b>. ${"The sentence goes on. ".repeat(12)}

1. first item with \`code\`
2. second item ${"with many words ".repeat(8)}
   - nested 한국어
   - [ ] a task

     a paragraph of the item
10. third

\`\`\`ts
const answer: number = 42; // the answer
${Array.from({ length: 70 }, (_, at) => `  call("${at}", ${at});\t// tab`).join("\n")}
\`\`\`

> quoted **text**
> in two lines

| name | what it is | 価格 |
| --- | --- | ---: |
| a | ${"long words ".repeat(9)} | 1 |
| b | short | 200 |

---

    indented code

Unclosed **bold and \`code

- a

- b

[ref]: https://example.com

| not | a table

\`\`\`
an open fence
`;

const documents: Readonly<Record<string, string>> = {
  mixed,
  readme: readFileSync(join(root, "README.md"), "utf8"),
  concepts: readFileSync(join(root, "docs/concepts.md"), "utf8"),
};

class Terminal extends Writable {
  readonly isTTY = true;
  readonly judge: ScreenJudge;
  columns: number;
  rows: number;
  bytes = 0;
  text = "";

  constructor(columns: number, rows: number) {
    super({ decodeStrings: false });
    this.columns = columns;
    this.rows = rows;
    this.judge = createScreenJudge(columns, rows);
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.bytes += Buffer.byteLength(chunk);
    this.text += chunk;
    this.judge.write(chunk);
    done();
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.judge.resize(columns, rows);
    this.columns = columns;
    this.rows = rows;
  }
}

const promptRows = ["", "> typed 日本"];
const caret = { row: 1, column: 12 };

/** A screen that shows a reply over a prompt. */
function replyScreen(terminal: Terminal): { readonly screen: Screen; readonly stream: MarkdownStream } {
  const stream = new MarkdownStream(options);
  const draw = (): Frame => {
    const room = { columns: terminal.columns, mostRows: Math.max(1, screen.mostRows - promptRows.length) };
    const { finished, open } = stream.take(room);
    return { finished, rows: [...open, ...promptRows], caret: { row: open.length + caret.row, column: caret.column } };
  };
  const screen: Screen = new Screen(terminal, { draw, frameMs: 0 });
  return { screen, stream };
}

function end(terminal: Terminal, screen: Screen, stream: MarkdownStream): void {
  const { finished } = stream.take({ columns: terminal.columns, mostRows: screen.mostRows }, true);
  screen.commit(finished);
  screen.flush();
}

/** The rows of a text that is printed at once. */
function printed(text: string, columns: number): readonly string[] {
  const stream = new MarkdownStream(options);
  stream.push(text);
  return stream.take({ columns, mostRows: 1000 }, true).finished;
}

async function shown(rows: readonly string[], columns: number, height: number): Promise<readonly string[]> {
  const judge = createScreenJudge(columns, height);
  for (const row of rows) judge.write(`${row}\r\n`);
  return withoutEnd(await judge.lines());
}

function withoutEnd(lines: readonly string[]): readonly string[] {
  const last = lines.findLastIndex((line) => line !== "" && !line.startsWith("> typed"));
  return lines.slice(0, last + 1).map((line) => line.trimEnd());
}

function pieces(text: string, length: number): readonly string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, at) => text.slice(at * length, (at + 1) * length));
}

describe("a reply that is streamed", () => {
  it.each([20, 40, 80, 200])("stands on a screen of %i columns as if it had been printed at once", async (columns) => {
    for (const [name, text] of Object.entries(documents)) {
      const terminal = new Terminal(columns, 24);
      const { screen, stream } = replyScreen(terminal);
      for (const piece of pieces(text, 7)) {
        stream.push(piece);
        screen.flush();
      }
      end(terminal, screen, stream);
      const wanted = await shown(printed(text, columns), columns, 24);
      expect(wanted.length, name).toBeGreaterThan(60);
      expect(withoutEnd(await terminal.judge.lines()), name).toEqual(wanted);
      const rows = await terminal.judge.screen();
      expect(rows.filter((row) => row.startsWith("> typed"))).toEqual([promptRows[1]]);
    }
  });

  it("has the same rows in whatever pieces it came", () => {
    for (const length of [3, 64, 1000]) {
      const stream = new MarkdownStream(options);
      const rows: string[] = [];
      for (const piece of pieces(mixed, length)) {
        stream.push(piece);
        rows.push(...stream.take({ columns: 80, mostRows: 20 }).finished);
      }
      rows.push(...stream.take({ columns: 80, mostRows: 20 }, true).finished);
      expect(rows).toEqual(printed(mixed, 80));
    }
  });

  it("is whole and has no ghost after the window changes its size five times", async () => {
    const terminal = new Terminal(80, 24);
    const { screen, stream } = replyScreen(terminal);
    const sizes = [
      [40, 24],
      [100, 30],
      [20, 8],
      [80, 40],
      [60, 24],
    ] as const;
    const words = Array.from({ length: 600 }, (_, at) => `word${at}${at % 40 === 39 ? "\n\n" : " "}`);
    for (const [at, word] of words.entries()) {
      stream.push(word);
      screen.flush();
      const size = at % 100 === 50 ? sizes[Math.floor(at / 100)] : undefined;
      if (size !== undefined) await terminal.resize(size[0], size[1]);
    }
    end(terminal, screen, stream);
    const lines = await terminal.judge.lines();
    const found = lines.join(" ").match(/word\d+/g) ?? [];
    expect(found).toEqual(words.map((word) => word.trim()));
    expect(lines.filter((line) => line.includes("> typed"))).toHaveLength(1);
  });

  it("costs at most 25 bytes a token, and no byte where nothing changed", () => {
    const terminal = new Terminal(80, 24);
    const { screen, stream } = replyScreen(terminal);
    let frames = 0;
    for (const [at, piece] of pieces(mixed.repeat(4), 4).entries()) {
      stream.push(piece);
      // 1,000 tokens and 30 frames a second.
      if (at % 33 !== 0) continue;
      screen.flush();
      frames += 1;
    }
    end(terminal, screen, stream);
    expect(frames).toBeGreaterThan(80);
    expect(terminal.bytes / mixed.length).toBeLessThanOrEqual(25);
    const before = terminal.bytes;
    screen.flush();
    screen.flush();
    expect(terminal.bytes).toBe(before);
  });

  it("never erases or moves what is above the region", async () => {
    const terminal = new Terminal(40, 10);
    const { screen, stream } = replyScreen(terminal);
    for (const piece of pieces(mixed, 50)) {
      stream.push(piece);
      screen.flush();
    }
    end(terminal, screen, stream);
    await terminal.resize(20, 10);
    screen.flush();
    // Clearing, scroll regions, scrolling, saved cursors, the second screen, the mouse.
    expect(terminal.text).not.toMatch(
      /\u001b\[[23]J|\u001b\[[\d;]*r|\u001b\[\d*[ST]|\u001b[78]|\u001b\[[su]|\?1049|\?100\d/,
    );
  });

  it("brings no byte of a transcript that acts on a terminal", () => {
    const attack =
      "a\u001b]52;c;cm0=\u0007b\u001b[2Jc\u009b31md\u202ee\rf\u0008\u0000 `\u001b[3J` [x](\u001b]8;;y\u0007) ";
    const stream = new MarkdownStream({ ...options, styles: createStyles(false) });
    for (const character of `${attack}\n\n\`\`\`${attack}\n${attack}\n\`\`\`\n| ${attack} | b |\n| - | - |\n| ${attack} | c |`)
      stream.push(character);
    const { finished } = stream.take({ columns: 80, mostRows: 20 }, true);
    expect(finished.length).toBeGreaterThan(4);
    expect(finished.join("")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});
