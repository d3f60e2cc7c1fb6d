import { createFinding, defaultIdempotency } from "@throughline/core/internal";
import { type Finding, type SessionRef } from "@throughline/core";
import { parseObject } from "./json-members.ts";
import type { AgentFolder } from "./agent-folder.ts";
import { gather, replaceFile } from "./file-work.ts";
import type { Files } from "./files.ts";
import {
  decodeRowChange,
  encodeRowChange,
  hasWrongChecksum,
  horizonOf,
  keptSinceMs,
  lineOfRow,
  timeOf,
  type DecodedChange,
  type KeyedAppend,
  type RowChange,
  type SessionKeys,
  type SessionRow,
} from "./session-row.ts";
import type { LineCodec } from "./stored-line.ts";

/** What reading and writing the entries log of an agent needs. */
export interface LogReading {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly agent: Pick<SessionRef, "namespace" | "agentId">;
  readonly codec: LineCodec;
}

/** What lines of the entries log add up to. */
export class LogImage {
  readonly rows: Map<string, SessionRow> = new Map();
  /** Active sessions by key. */
  readonly idByKey: Map<string, string> = new Map();
  /** Sessions that were purged and whose bytes may still have to go: ids, and names of transcripts that are called otherwise. */
  readonly removed: Set<string> = new Set();
  readonly keyed: KeyedAppends = new KeyedAppends();

  readonly #idByLetters: Map<string, string> = new Map();

  apply({ rows, removed = [], keyed = [] }: RowChange): void {
    for (const sessionId of removed) {
      this.#forgetKey(sessionId);
      this.rows.delete(sessionId);
      this.#idByLetters.delete(sessionId.toLowerCase());
      this.removed.add(sessionId);
      this.keyed.forget(sessionId);
    }
    for (const row of rows) this.#forgetKey(row.sessionId);
    for (const row of rows) {
      this.removed.delete(row.sessionId);
      this.take(row);
    }
    for (const keys of keyed) this.keyed.remember(keys);
  }

  take(row: SessionRow): void {
    this.rows.set(row.sessionId, row);
    this.#idByLetters.set(row.sessionId.toLowerCase(), row.sessionId);
    if (!row.isArchived) this.idByKey.set(row.key, row.sessionId);
  }

  /** A session whose id is this one but for capitals. */
  twinOf(sessionId: string): string | null {
    return this.#idByLetters.get(sessionId.toLowerCase()) ?? null;
  }

  /** Every name a transcript may have. */
  fileNames(): Iterable<string> {
    return [...this.rows.values()].flatMap(({ sessionId, fileName, formerFileName = fileName }) => [
      `${sessionId}.jsonl`,
      fileName,
      formerFileName,
    ]);
  }

  clear(): void {
    this.rows.clear();
    this.idByKey.clear();
    this.removed.clear();
    this.keyed.clear();
    this.#idByLetters.clear();
  }

  #forgetKey(sessionId: string): void {
    const old = this.rows.get(sessionId);
    if (old !== undefined && this.idByKey.get(old.key) === sessionId) this.idByKey.delete(old.key);
  }
}

/** Keyed appends without records, by session: as many, and for as long, as every store remembers them. */
export class KeyedAppends {
  readonly #bySession: Map<string, Map<string, KeyedAppend>> = new Map();
  /** When the last one came. */
  readonly #newestMs: Map<string, number> = new Map();

  /** The oldest first; one that is known already stays where it is. */
  remember({ sessionId, appends }: SessionKeys): void {
    if (appends.length === 0) return;
    const known = this.#bySession.get(sessionId) ?? new Map<string, KeyedAppend>();
    this.#bySession.set(sessionId, known);
    for (const append of appends) known.set(append[0], append);
    const newestMs = timeOf(appends.at(-1));
    this.#newestMs.set(sessionId, newestMs);
    const sinceMs = keptSinceMs(newestMs);
    for (const [key, append] of known) {
      if (known.size <= defaultIdempotency.rememberedAppends || timeOf(append) >= sinceMs) break;
      known.delete(key);
    }
  }

  find(sessionId: string, key: string): KeyedAppend | null {
    return this.#bySession.get(sessionId)?.get(key) ?? null;
  }

  of(sessionId: string): readonly KeyedAppend[] {
    return [...(this.#bySession.get(sessionId)?.values() ?? [])];
  }

  /** A key made no later may have been forgotten. */
  horizonMs(sessionId: string): number {
    const known = this.#bySession.get(sessionId);
    if (known === undefined || known.size < defaultIdempotency.rememberedAppends) return -1;
    const [oldest] = known.values();
    return horizonOf(timeOf(oldest), this.#newestMs.get(sessionId) ?? 0);
  }

  *[Symbol.iterator](): Generator<SessionKeys, void, void> {
    for (const [sessionId, known] of this.#bySession) yield { sessionId, appends: [...known.values()] };
  }

  forget(sessionId: string): void {
    this.#bySession.delete(sessionId);
    this.#newestMs.delete(sessionId);
  }

  clear(): void {
    this.#bySession.clear();
    this.#newestMs.clear();
  }
}

/** Puts a log with what an image holds, these purges that may be unfinished and these lines of a newer version in the place of the one there is. Under the entries lock. */
export function replaceLog(
  { files, folder, codec, agent }: LogReading,
  { rows, keyed }: LogImage,
  removed: readonly string[],
  newer: readonly string[],
): void {
  const line = (change: RowChange): string => `${encodeRowChange(change, codec, agent)}\n`;
  function* lines(): Generator<string> {
    for (const row of rows.values()) {
      const { sessionId } = row;
      const appends = keyed.of(sessionId);
      // As it was read or written: most of the log stays. What is coded gets the key of now.
      if (appends.length === 0 && !codec.isCoded) yield `${lineOfRow(row, codec, agent)}\n`;
      else yield line({ op: "save", rows: [row], keyed: [{ sessionId, appends }] });
    }
    if (removed.length > 0) yield line({ op: "remove", rows: [], removed });
    for (const one of newer) yield `${one}\n`;
  }
  replaceFile(files, folder.temporary("entries.log"), folder.entriesLog, (append) => gather(lines(), append));
}

/** How long a log with what an image holds is. */
export function lengthOf({ rows, keyed }: LogImage, { codec, agent }: Pick<LogReading, "codec" | "agent">): number {
  let bytes = 0;
  for (const row of rows.values()) bytes += Buffer.byteLength(lineOfRow(row, codec, agent)) + 1;
  for (const { appends } of keyed) bytes += Buffer.byteLength(JSON.stringify(appends));
  return bytes;
}

/** What a line of the entries log says, and what is lost in its place. */
export interface LogLine {
  /** Mostly one; none where nothing can be read. */
  readonly decoded: readonly DecodedChange[];
  /** The text nobody can read, empty where only zeros are left; null when nothing is lost. */
  readonly lost: string | null;
  /** There are zeros in it, as a power cut leaves them: it may never have been acknowledged. */
  readonly hasZeros: boolean;
}

/** Zeros, or another byte in the place of the line feed behind a change. */
const betweenChanges = /\0+|(?<=\}).(?=\{"v":1,"op":"|$)/;

/**
 * Reads a line. There may be zeros in it: what a power cut leaves of lines whose size arrived and whose bytes did not, line
 * feeds included. A single one between whole changes was a line feed.
 */
export function readLogLine(
  bytes: Uint8Array,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): LogLine {
  const text = Buffer.from(bytes).toString();
  const whole = hasWrongChecksum(text) ? null : decodeRowChange(text, codec, agent);
  const hasZeros = text.includes("\0");
  if (whole !== null) return { decoded: [whole], lost: null, hasZeros };
  const decoded: DecodedChange[] = [];
  const unread: string[] = [];
  for (const part of text.split(betweenChanges)) {
    const change = part === "" || hasWrongChecksum(part) ? null : decodeRowChange(part, codec, agent);
    if (change !== null) decoded.push(change);
    else if (part !== "") unread.push(part);
  }
  const isWhole = unread.length === 0 && decoded.length > 0 && !/^\0|\0\0|\0$/.test(text);
  return { decoded, lost: isWhole ? null : unread.join("\n"), hasZeros };
}

/** The finding about a line; null for a whole one. */
export function logLineFinding({ decoded, lost }: LogLine, place: Parameters<typeof createFinding>[2]): Finding | null {
  if (lost !== null && !hasWrongChecksum(lost))
    return createFinding("ENTRY_UNREADABLE", "A line of the entries log cannot be read.", place);
  if (lost === null && decoded.every(({ isChecksumRight }) => isChecksumRight)) return null;
  return createFinding("CHECKSUM_MISMATCH", "A line of the entries log does not fit its checksum.", place);
}

/** A session that a broken line names. Its id or its key may be what is damaged. */
interface NamedSession {
  readonly sessionId: string;
  readonly key: string;
}

interface Suspect extends NamedSession {
  /** The number of the line; null where a power cut left it. */
  readonly line: number | null;
  /** A later line is about the id. */
  readonly hasLaterId: boolean;
  /** A later line is about the key. */
  readonly hasLaterKey: boolean;
}

/** A session whose newest line may be one that cannot be read. */
export interface SuspectSession {
  /** Null for one that the log does not have. */
  readonly row: SessionRow | null;
  readonly line: number | null;
}

/** Lines of the entries log that cannot be read any more, and which sessions they were about. */
export class LogDamage {
  /** A line is missing that nobody can say anything of. */
  isThere = false;
  /** There are lines that are not understood here, damaged or of a newer version: they must stay. */
  hasUnread = false;
  /** Whole lines of a newer version without a line of this version after them: a rewritten log keeps them. */
  newer: string[] = [];
  /** The last line that is not what was written, from 1; null where power cuts left all of them. */
  line: number | null = null;
  #suspects: Suspect[] = [];

  /** Takes note of what is wrong with a line, and says so. */
  note(
    read: LogLine,
    place: { readonly path: string; readonly line: number; readonly byteOffset: number },
    onFinding: (finding: Finding) => void,
  ): void {
    this.add(read, place.line);
    const finding = logLineFinding(read, place);
    if (finding !== null) onFinding(finding);
  }

  /** A line of a newer version is whole: it only is not understood here. `line`: its number. */
  add({ lost, hasZeros }: LogLine, line: number): void {
    if (lost === null) return;
    this.hasUnread = true;
    if (parseObject(lost) !== null && !hasWrongChecksum(lost)) return void this.newer.push(lost);
    this.isThere = true;
    if (!hasZeros) this.line = line;
    const at = { line: hasZeros ? null : line, hasLaterId: false, hasLaterKey: false };
    for (const named of sessionsNamed(lost)) this.#suspects.push({ ...named, ...at });
  }

  /** Sessions whose newest line may be one that is broken. A line whose id and key do not belong together is about either. */
  suspected(log: {
    row(sessionId: string): SessionRow | null;
    holder(key: string): SessionRow | null;
  }): readonly SuspectSession[] {
    return this.#suspects.flatMap(({ sessionId, key, line, hasLaterId, hasLaterKey }): SuspectSession[] => {
      const named = log.row(sessionId);
      const holder = named?.key === key ? null : log.holder(key);
      const rows = [hasLaterId ? null : named, hasLaterKey ? null : holder].filter((row) => row !== null);
      if (rows.length === 0 && !hasLaterId) return [{ row: null, line }];
      return rows.map((row) => ({ row, line }));
    });
  }

  /** What comes later says everything that the broken line said. */
  mend({ rows, removed = [] }: RowChange): void {
    if (this.#suspects.length === 0 && this.newer.length === 0) return;
    const [ids, keys] = [new Set(removed), new Set(rows.map(({ key }) => key))];
    for (const { sessionId } of rows) ids.add(sessionId);
    this.#suspects = this.#suspects
      .filter(({ sessionId }) => !removed.includes(sessionId))
      .map((one) => ({
        ...one,
        hasLaterId: one.hasLaterId || ids.has(one.sessionId),
        hasLaterKey: one.hasLaterKey || keys.has(one.key),
      }))
      .filter(({ hasLaterId, hasLaterKey }) => !hasLaterId || !hasLaterKey);
    this.newer = this.newer.filter((line) => ![...ids].some((id) => line.includes(JSON.stringify(id))));
  }

  clear(): void {
    this.isThere = false;
    this.hasUnread = false;
    this.newer = [];
    this.line = null;
    this.#suspects = [];
  }
}

const namedRow = /("agentId":"[^"\\]*",)?"key":"([^"\\]*)","sessionId":"([^"\\]+)"/g;

/** The sessions that a broken line names. The origin of a fork is named with its agent, and the line is not about it. */
function sessionsNamed(line: string): readonly NamedSession[] {
  const rows = [...line.matchAll(namedRow)].filter(([, agent]) => agent === undefined);
  if (rows.length > 0) return rows.map(([, , key = "", sessionId = ""]) => ({ sessionId, key }));
  const key = /"key":"([^"\\]*)"/.exec(line)?.[1] ?? "";
  const ids = [...line.matchAll(/"sessionId":"([^"\\]+)"/g)].map(([, sessionId = ""]) => sessionId);
  return (ids.length === 0 ? [""] : ids).map((sessionId) => ({ sessionId, key }));
}

const maxKeptRows = 4096;

/**
 * Sessions whose line in the entries log may not be on the disk: this process or another has just written it. What is
 * acknowledged in such a session hangs on that line, which says what the session is called and where it is.
 */
export class UnflushedRows {
  /** Where the line ends, by session. */
  readonly #ends: Map<string, number> = new Map();
  /** What lies before this was forgotten. */
  #forgottenBytes = 0;

  /** `flushedBytes`: what is on the disk, for forgetting what lies there. */
  note({ op, rows }: RowChange, endBytes: number, flushedBytes: number): void {
    // What only the entry says may be lost: it is acknowledged by itself.
    if (op === "catch-up" || (op === "save" && rows.every(({ revision }) => revision > 1))) return;
    if (this.#ends.size >= maxKeptRows && flushedBytes > this.#forgottenBytes) this.#forget(flushedBytes);
    for (const { sessionId } of rows) this.#ends.set(sessionId, endBytes);
  }

  isOnDisk(sessionId: string, flushedBytes: number): boolean {
    const end = this.#ends.get(sessionId);
    if (end === undefined) return true;
    if (end > flushedBytes) return false;
    this.#ends.delete(sessionId);
    return true;
  }

  clear(): void {
    this.#ends.clear();
    this.#forgottenBytes = 0;
  }

  /** Once for each flush: reading a long log must not look at all that was read with every line of it. */
  #forget(flushedBytes: number): void {
    this.#forgottenBytes = flushedBytes;
    for (const [id, end] of this.#ends) if (end <= flushedBytes) this.#ends.delete(id);
  }
}
