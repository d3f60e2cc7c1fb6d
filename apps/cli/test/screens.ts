import { SerializeAddon } from "@xterm/addon-serialize";
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import xterm from "@xterm/headless";
import { expect } from "vitest";
import type { Terminal } from "./terminal.ts";

/** What a terminal shows of the bytes that it got. */
export interface ScreenJudge {
  write(text: string): void;
  resize(columns: number, rows: number): Promise<void>;
  /** Returns all rows, those that scrolled out first; a row that the terminal wrapped is one line. */
  lines(): Promise<readonly string[]>;
  /** Returns the rows that stand on the screen. */
  screen(): Promise<readonly string[]>;
  caret(): Promise<{ readonly row: number; readonly column: number }>;
  serialized(): Promise<string>;
}

export function createScreenJudge(columns: number, rows: number): ScreenJudge {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 100_000,
    allowProposedApi: true,
    logLevel: "off",
  });
  const serializer = new SerializeAddon();
  terminal.loadAddon(serializer);
  terminal.loadAddon(new UnicodeGraphemesAddon());
  terminal.unicode.activeVersion = "15-graphemes";
  const settled = (): Promise<void> => new Promise((resolve) => terminal.write("", resolve));
  const rowAt = (at: number): { readonly text: string; readonly isWrapped: boolean } => {
    const row = terminal.buffer.active.getLine(at);
    return { text: row?.translateToString(true) ?? "", isWrapped: row?.isWrapped === true };
  };
  return {
    write: (text) => terminal.write(text),
    resize: async (wide, high) => {
      await settled();
      terminal.resize(wide, high);
    },
    lines: async () => {
      await settled();
      const lines: string[] = [];
      for (let at = 0; at < terminal.buffer.active.length; at++) {
        const { text, isWrapped } = rowAt(at);
        if (isWrapped) lines.push(`${lines.pop() ?? ""}${text}`);
        else lines.push(text);
      }
      return lines;
    },
    screen: async () => {
      await settled();
      const { baseY } = terminal.buffer.active;
      return Array.from({ length: terminal.rows }, (_, at) => rowAt(baseY + at).text);
    },
    caret: async () => {
      await settled();
      const { cursorX, cursorY } = terminal.buffer.active;
      return { row: cursorY, column: cursorX };
    },
    serialized: async () => {
      await settled();
      return serializer.serialize();
    },
  };
}

/** Returns the rows that the terminal shows now, without spaces at their ends. */
export async function screenOf(terminal: Terminal, columns = 80, rows = 24): Promise<readonly string[]> {
  const judge = createScreenJudge(columns, rows);
  judge.write(terminal.raw());
  return (await judge.screen()).map((row) => row.trimEnd());
}

/** Waits until a row of the screen matches, and returns it. */
export async function rowOf(terminal: Terminal, wanted: RegExp, columns = 80, rows = 24): Promise<string> {
  const find = async (): Promise<string> =>
    (await screenOf(terminal, columns, rows)).find((row) => wanted.test(row)) ?? "";
  await expect.poll(find, { timeout: 60_000 }).toMatch(wanted);
  return find();
}
