import { Buffer } from "node:buffer";
import type { StoredRecord } from "@throughline/core";
import { searchText } from "@throughline/core/internal";
import { quotedText, roleText } from "./plain-text.ts";

export interface HistoryLimits {
  /** Limits all lines of one answer together, in bytes. */
  readonly totalBytes: number;
  /** Limits the text of each record, in characters. */
  readonly textLength: number;
}

export interface HistoryLine {
  readonly seq: number;
  readonly id: string;
  readonly role: string;
  readonly text: string;
  /** Counts the characters that were cut off, so that the model sees that the text is incomplete. */
  readonly cut: number;
}

/** Cuts the searchable text of a record to `textLength`. Null for a record that has no text to show. */
export function historyLine(
  { seq, id, record }: StoredRecord,
  { withTools, textLength }: { readonly withTools: boolean; readonly textLength: number },
): HistoryLine | null {
  const found = searchText(record);
  if (found === null) return null;
  const role = found.role ?? record.type;
  if (!withTools && (role === "toolResult" || role === "bashExecution")) return null;
  const text = found.text.trim();
  if (text === "") return null;
  const shown = text.slice(0, textLength).toWellFormed();
  return { seq, id, role, text: shown, cut: text.length - shown.length };
}

/**
 * Keeps the newest lines that fit, oldest first. The newest line always stays, so that an answer is never empty because
 * of its size.
 */
export function fitting(lines: readonly HistoryLine[], totalBytes: number): readonly HistoryLine[] {
  let bytes = 0;
  const kept: HistoryLine[] = [];
  for (const line of lines.toReversed()) {
    bytes += Buffer.byteLength(line.text) + 64;
    if (bytes > totalBytes && kept.length > 0) break;
    kept.push(line);
  }
  return kept.toReversed();
}

/**
 * Puts seq and role on one line and quotes the text below. The quotation keeps a transcript from forging a line of the
 * answer.
 */
export function lineText({ seq, role, text, cut }: HistoryLine): string {
  const rest = cut === 0 ? "" : `\n  [${cut} more characters]`;
  return `#${seq} ${roleText(role)}\n${quotedText(text)}${rest}`;
}
