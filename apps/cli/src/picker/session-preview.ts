import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { causeText, commandLine, messageRole, sessionProgram } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { ThroughlineError } from "@throughline/core";
import { readTail } from "@throughline/history/internal";
import { planResume } from "@throughline/transfer/internal";
import { shorten } from "../cells.ts";
import type { MarkdownOptions } from "../chat/screen/markdown-inline.ts";
import type { Region } from "../chat/screen/screen.ts";
import { sessionRows } from "../chat/screen/session-rows.ts";
import { counted } from "../counted.ts";
import { shownFolder, shownName, shownProgram } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { ageText } from "../time-text.ts";
import type { RowParts } from "./list-rows.ts";
import type { ListedSession } from "./listed-session.ts";

/** The preview shows this of a session before a person opens it. */
export interface SessionPreview {
  readonly state: SessionState;
  readonly name: string;
  /** Holds the end of the session, or the records around a hit. */
  readonly records: readonly StoredRecord[];
  readonly hitSeq: number | null;
  /** Continues the session in its own program; null for a session that began here. */
  readonly resume: ResumeAnswer | null;
}

/** `text` is the command; if the program cannot resume it, the reason. */
export interface ResumeAnswer {
  readonly isPossible: boolean;
  readonly text: string;
}

const mostMessages = 40;
/** The records before and after a hit. */
const around = 3;

/** Returns null for a session that was removed meanwhile. */
export async function loadPreview(
  store: SessionStore,
  { ref }: Pick<ListedSession, "ref">,
  hitSeq: number | null,
  signal: AbortSignal,
): Promise<SessionPreview | null> {
  const state = await store.load(ref, { signal });
  if (state === null) return null;
  const [name, records, resume] = await Promise.all([
    shownName(store, state, signal),
    hitSeq === null ? lastMessages(store, state, signal) : neighbors(store, state, hitSeq, signal),
    resumeAnswer(state),
  ]);
  return { state, name: terminalSafeLine(name), records, hitSeq, resume };
}

function lastMessages(
  store: SessionStore,
  { head, ref }: SessionState,
  signal: AbortSignal,
): Promise<readonly StoredRecord[]> {
  const selection = { isAll: true, isAllBranches: false, afterSeq: 0, role: "shown", tail: mostMessages };
  const roleOf = ({ type, side }: StoredRecord): string | null => (type === "message" && !side ? "shown" : null);
  return readTail(withinMemory(store), ref, { head, selection, roleOf }, signal);
}

async function neighbors(
  store: SessionStore,
  { ref }: SessionState,
  seq: number,
  signal: AbortSignal,
): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  const range = { afterSeq: Math.max(0, seq - around - 1), beforeSeq: seq + around + 1, signal };
  for await (const page of withinMemory(store).read(ref, range))
    for (const stored of page.records) if (messageRole(stored.record) !== null) records.push(stored);
  return records;
}

async function resumeAnswer(state: SessionState): Promise<ResumeAnswer | null> {
  try {
    const plan = await planResume(state);
    if (plan === null) return null;
    const { cwd, isFolderThere, command } = plan;
    if (!isFolderThere) return { isPossible: false, text: `The session's folder does not exist: ${cwd ?? ""}.` };
    return { isPossible: true, text: commandLine(cwd, {}, command) };
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    return { isPossible: false, text: causeText(error) };
  }
}

export interface PreviewLook {
  /** Rows from the start; null shows the end, or the hit. */
  readonly scroll: number | null;
  /** A question or an answer in the last row instead of the keys. */
  readonly note: string | null;
  readonly escape: string;
  readonly userHome: string;
  readonly nowMs: number;
}

/** The rows of the messages, so that they are printed once for each width. */
export interface PreviewRows {
  readonly rows: readonly string[];
  /** The row that the hit begins at. */
  readonly hitRow: number | null;
}

export function previewRows(preview: SessionPreview, options: MarkdownOptions, columns: number): PreviewRows {
  const { records, hitSeq } = preview;
  const before = hitSeq === null ? [] : records.filter(({ seq }) => seq < hitSeq);
  const hitRow = hitSeq === null ? null : sessionRows(before, options, columns).length;
  const rows = sessionRows(records, options, columns);
  return { rows: rows[0] === "" ? rows.slice(1) : rows, hitRow };
}

/** Returns the region, and the first shown row, so that scrolling starts there. */
export function drawPreview(
  preview: SessionPreview,
  { rows, hitRow }: PreviewRows,
  look: PreviewLook,
  mostRows: number,
  parts: RowParts,
): { readonly region: Region; readonly first: number } {
  const { styles, columns } = parts;
  const cut = (text: string): string => shorten(text, columns - 1, "end");
  const { resume } = preview;
  const head = [
    styles.bold(cut(` ${preview.name}`)),
    styles.dim(cut(` ${factsText(preview, look, parts)}`)),
    ...(resume === null
      ? []
      : [styles.dim(cut(` ${resume.isPossible ? "r" : "-"}  ${terminalSafeLine(resume.text)}`))]),
    styles.dim(parts.signs.line.repeat(Math.max(1, Math.min(columns - 1, 100)))),
  ];
  const room = Math.max(1, mostRows - head.length - 1);
  const last = Math.max(0, rows.length - room);
  const first = Math.max(0, Math.min(last, look.scroll ?? hitRow ?? last));
  const body = rows.length === 0 ? [styles.dim(" No messages.")] : rows.slice(first, first + room);
  const foot = look.note ?? keysText(preview, { first, last }, look, parts);
  const all = [...head, ...body, styles.dim(cut(` ${foot}`))];
  return { region: { rows: all, caret: { row: all.length - 1, column: 0 } }, first };
}

function factsText({ state }: SessionPreview, { userHome, nowMs }: PreviewLook, { signs }: RowParts): string {
  const { entry, messageCount, updatedAtMs, ref, archived } = state;
  const parts = [
    shownProgram(sessionProgram(entry)),
    shownFolder(entry.cwd, userHome),
    ageText(updatedAtMs, nowMs),
    counted(messageCount, "message"),
    ...(archived ? ["archived"] : []),
    ref.key,
  ];
  return terminalSafeLine(parts.filter((part) => part !== "").join(` ${signs.dot} `));
}

function keysText(
  { state, resume }: SessionPreview,
  { first, last }: { readonly first: number; readonly last: number },
  { escape }: PreviewLook,
  { signs }: RowParts,
): string {
  const parts = [
    ...(last === 0 ? [] : [`${Math.round((first / last) * 100)} %`]),
    sessionProgram(state.entry) === null ? "c continue" : "c fork",
    ...(resume?.isPossible === true ? ["r resume"] : []),
    "h hand off",
    "y copy key",
    "R rename",
    `Esc ${escape}`,
  ];
  return parts.join(` ${signs.dot} `);
}
