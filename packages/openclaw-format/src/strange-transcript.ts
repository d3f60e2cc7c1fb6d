import { isFields, type Fields } from "@throughline/core/internal";
import { defaultMaxLineBytes } from "./line-splitter.ts";
import { maxRecordDepth, parseLine } from "./parse-line.ts";

/** Describes a file that no Throughline reader can read, and the remedy. */
interface StrangeTranscript {
  /** The text continues a sentence about the file: "is a transcript of …". */
  readonly what: string;
  readonly remedy: string;
  /** True means that the file may be a Throughline transcript whose line feeds became carriage returns. */
  readonly endsInReturns: boolean;
}

/** Other programs may start a file with lines of other types, so several lines are read. */
const mostLines = 20;

const otherProgram = "Import it: `throughline import FILE`. Only lines of ours are checked; the file was not changed.";

/**
 * Recognizes a file of another program, or one with unusual line ends, by its first kilobytes. Without this check, such
 * a file would read as one torn line, or as thousands of records that give no context. Null means that the reader can
 * try the file.
 */
export function strangeTranscript(beginning: Uint8Array): StrangeTranscript | null {
  const text = new TextDecoder().decode(beginning);
  // No JSON text holds a raw carriage return within a string, so this pattern is a line end.
  if (!text.includes("\n") && /\}[ \t]*\r\s*\{/.test(text))
    return {
      endsInReturns: true,
      what: "ends its lines with carriage returns alone, where a transcript has line feeds",
      remedy: "Make a copy with line feeds and take that: tr '\\r' '\\n' < FILE > COPY.jsonl",
    };
  for (const line of text.split("\n", mostLines)) {
    const { value } = parseLine(line, line.length, { maxLineBytes: defaultMaxLineBytes, maxDepth: maxRecordDepth });
    if (value === null) continue;
    if (isClaudeCode(value)) return strange("Claude Code");
    if (isCodex(value)) return strange("Codex");
  }
  return null;
}

function strange(program: string): StrangeTranscript {
  return { what: `is a transcript of ${program}`, remedy: otherProgram, endsInReturns: false };
}

function isClaudeCode(value: Fields): boolean {
  if (value["type"] === "summary") return typeof value["leafUuid"] === "string";
  return typeof value["uuid"] === "string" && "parentUuid" in value && typeof value["sessionId"] === "string";
}

const codexTypes: ReadonlySet<unknown> = new Set(["session_meta", "response_item", "event_msg", "turn_context"]);

function isCodex(value: Fields): boolean {
  return codexTypes.has(value["type"]) && isFields(value["payload"]);
}
