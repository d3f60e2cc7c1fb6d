import { isFields, type Fields } from "@throughline/core/internal";
import { defaultMaxLineBytes } from "./line-splitter.ts";
import { maxRecordDepth, parseLine } from "./parse-line.ts";

/** What a file is that no reader of ours can read, and what helps. */
interface StrangeTranscript {
  /** Goes on where the file was named: "is a transcript of …". */
  readonly what: string;
  readonly remedy: string;
  /** It may be one of ours: only its line feeds are carriage returns. */
  readonly endsInReturns: boolean;
}

/** The most lines that are read; other programs start with notes of their own. */
const mostLines = 20;

const otherProgram = "Import it: `throughline import FILE`. Only lines of ours are checked; the file was not changed.";

/**
 * Recognizes, by its first kilobytes, a transcript that is not one of ours: another program's, or one with unusual line
 * ends. Read as ours, such a file would be one torn line, or thousands of records of which no context is made. Null for
 * everything else.
 */
export function strangeTranscript(beginning: Uint8Array): StrangeTranscript | null {
  const text = new TextDecoder().decode(beginning);
  // No JSON text holds a bare carriage return within a string.
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
