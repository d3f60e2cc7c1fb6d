import { Buffer } from "node:buffer";
import type { StoredRecord } from "@throughline/core";
import { searchText } from "@throughline/core/internal";
import { quotedText, roleText } from "./plain-text.ts";

export interface HistoryLimits {
  /** Of all that one call shows. */
  readonly totalBytes: number;
  /** Of one record's text, in characters. */
  readonly textLength: number;
}

export interface HistoryLine {
  readonly seq: number;
  readonly id: string;
  readonly role: string;
  readonly text: string;
  /** Characters that were left out. */
  readonly cut: number;
}

/** What a record says, cut to its share; null for what nobody says. */
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

/** The newest lines that fit, oldest first. The newest of all is shown whatever its size. */
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

/** A record's place and role on one line, its text as a quotation below. No text in it can pose as another line. */
export function lineText({ seq, role, text, cut }: HistoryLine): string {
  const rest = cut === 0 ? "" : `\n  [${cut} more characters]`;
  return `#${seq} ${roleText(role)}\n${quotedText(text)}${rest}`;
}
