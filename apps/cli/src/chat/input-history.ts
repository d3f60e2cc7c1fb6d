import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";

/** Covers the lines of this terminal session and of earlier ones. */
export interface InputHistory {
  add(text: string): void;
  /** Moves one line back; `newer` returns `current` again at the end. Null at the oldest line. */
  older(current: string): string | null;
  newer(): string | null;
  /** Finds the newest line that contains the text and is older than line number `before`; null when there is none. */
  find(text: string, before?: number): FoundLine | null;
}

interface FoundLine {
  readonly text: string;
  readonly number: number;
}

const mostKept = 1000;
/** A longer text is a paste, which is not worth recalling. */
const longestKept = 10_000;

/**
 * Keeps lines in a file that only the user can read, because prompts may be private. Text that begins with a space is
 * not kept, as in a shell.
 * @param onUnusable runs once when the file cannot be read or written; lines then last until the process ends
 */
export function createInputHistory(path: string | null, onUnusable: (error: unknown) => void = () => {}): InputHistory {
  let kept = path;
  const withFile = <Result>(use: (file: string) => Result): Result | undefined => {
    if (kept === null) return undefined;
    try {
      return use(kept);
    } catch (error) {
      kept = null;
      onUnusable(error);
      return undefined;
    }
  };
  const lines = withFile(readLines) ?? [];
  let at = lines.length;
  let unsent = "";
  return {
    add: (text) => {
      at = lines.length;
      if (text.trim() === "" || text.startsWith(" ") || text.length > longestKept || lines.at(-1) === text) return;
      lines.push(text);
      at = lines.length;
      withFile((file) => {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        appendFileSync(file, `${JSON.stringify(text)}\n`, { mode: 0o600 });
      });
    },
    older: (current) => {
      if (at === lines.length) unsent = current;
      if (at === 0) return null;
      at -= 1;
      return lines[at] ?? null;
    },
    find: (text, before = lines.length) => {
      if (text === "") return null;
      const wanted = text.toLowerCase();
      for (let number = Math.min(before, lines.length) - 1; number >= 0; number--) {
        const line = lines[number] ?? "";
        if (line.toLowerCase().includes(wanted)) return { text: line, number };
      }
      return null;
    },
    newer: () => {
      if (at >= lines.length) return null;
      at += 1;
      return lines[at] ?? unsent;
    },
  };
}

function readLines(path: string): string[] {
  const all = textOf(path)
    .split("\n")
    .flatMap((line) => {
      try {
        const text: unknown = JSON.parse(line);
        return typeof text === "string" ? [text] : [];
      } catch {
        // The line is incomplete or from another program. Only a convenience is lost.
        return [];
      }
    });
  const kept = all.slice(-mostKept);
  // The file is shortened only once it has twice the kept lines, so that most starts do not write.
  if (all.length > 2 * mostKept)
    writeFileSync(path, kept.map((text) => `${JSON.stringify(text)}\n`).join(""), { mode: 0o600 });
  return kept;
}

function textOf(path: string): string {
  try {
    return readBoundedFile(path, { what: "history", mostBytes: mostFileBytes });
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return "";
    throw error;
  }
}
