import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";

/** What was submitted before, of this terminal and of earlier ones. */
export interface InputHistory {
  add(text: string): void;
  /** One step back; `current` comes again at the end of the way forward. Null at the oldest. */
  older(current: string): string | null;
  newer(): string | null;
  /** The newest line with this text in it that is older than `before` (the number of a line); null when there is none. */
  find(text: string, before?: number): FoundLine | null;
}

interface FoundLine {
  readonly text: string;
  readonly number: number;
}

const mostKept = 1000;
/** A paste of megabytes is no line to come back to. */
const longestKept = 10_000;

/**
 * Keeps lines in a file of its owner's alone: whoever talks to an agent says things that are nobody else's business.
 * Text that begins with a space is kept nowhere, as in a shell.
 * @param onUnusable called once when the file cannot be read or written; lines are then kept until the end only
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
        // The end of a line that was never finished, or another program's: it is only a convenience that is lost.
        return [];
      }
    });
  const kept = all.slice(-mostKept);
  // Now and then the file is brought down to what is kept.
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
