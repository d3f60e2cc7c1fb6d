import { createFinding, defaultIdempotency } from "@throughline/core/internal";
import type { Finding, SessionRef } from "@throughline/core";
import { parseObject } from "./json-members.ts";
import type { AgentFolder } from "./agent-folder.ts";
import { gather, replaceFile } from "./file-work.ts";
import type { Files } from "./files.ts";
import { sourceDigestOf } from "./undecodable-entry.ts";
import {
  decodeRowChange,
  encodeRowChange,
  checksumsOf,
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

export interface LogReading {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly agent: Pick<SessionRef, "namespace" | "agentId">;
  readonly codec: LineCodec;
}

export class LogImage {
  readonly rows: Map<string, SessionRow> = new Map();
  /** Maps keys to active sessions only, because an archived session no longer holds its key. */
  readonly idByKey: Map<string, string> = new Map();
  /**
   * Holds the purged sessions whose bytes may still exist: session ids, and base names of transcripts that differ from
   * the id.
   */
  readonly removed: Set<string> = new Set();
  readonly keyed: KeyedAppends = new KeyedAppends();
  readonly sources: ImportSources = new ImportSources();

  /** Is made with the first question, because most handles create no session. */
  #idByLetters: Map<string, string> | null = null;

  apply({ rows, removed = [], keyed = [], purged = [] }: RowChange): void {
    for (const sessionId of removed) {
      this.#forgetKey(sessionId);
      this.rows.delete(sessionId);
      this.#idByLetters?.delete(sessionId.toLowerCase());
      this.removed.add(sessionId);
      this.keyed.forget(sessionId);
      this.sources.forget(sessionId);
    }
    for (const row of rows) this.#forgetKey(row.sessionId);
    for (const row of rows) {
      this.removed.delete(row.sessionId);
      this.take(row);
    }
    for (const keys of keyed) this.keyed.remember(keys);
    for (const [digest, atMs] of purged) this.sources.purged.set(digest, atMs);
  }

  take(row: SessionRow): void {
    this.rows.set(row.sessionId, row);
    this.#idByLetters?.set(row.sessionId.toLowerCase(), row.sessionId);
    if (!row.isArchived) this.idByKey.set(row.key, row.sessionId);
    this.sources.note(row);
  }

  /**
   * Returns a session id that differs from this one at most in case, because some file systems do not distinguish case.
   */
  twinOf(sessionId: string): string | null {
    this.#idByLetters ??= new Map(this.rows.keys().map((id) => [id.toLowerCase(), id]));
    return this.#idByLetters.get(sessionId.toLowerCase()) ?? null;
  }

  forks(): readonly SessionRow[] {
    return [...this.rows.values()].filter(({ origins = [] }) => origins.length > 0);
  }

  fileNames(): ReadonlySet<string> {
    const names = [...this.rows.values()].flatMap(({ sessionId, fileName, formerFileName = fileName }) => [
      `${sessionId}.jsonl`,
      fileName,
      formerFileName,
    ]);
    return new Set(names);
  }

  clear(): void {
    this.rows.clear();
    this.idByKey.clear();
    this.removed.clear();
    this.keyed.clear();
    this.sources.clear();
    this.#idByLetters = null;
  }

  #forgetKey(sessionId: string): void {
    const old = this.rows.get(sessionId);
    if (old !== undefined && this.idByKey.get(old.key) === sessionId) this.idByKey.delete(old.key);
  }
}

/** Finds sessions by the digest of the source that their entry states, and the purges of sources. */
export class ImportSources {
  /** Maps the digest of a source to the time of its last purge, in UTC milliseconds. */
  readonly purged: Map<string, number> = new Map();
  readonly #ids: Map<string, Set<string>> = new Map();
  readonly #digests: Map<string, string> = new Map();

  note(row: SessionRow): void {
    const { sessionId } = row;
    const digest = sourceDigestOf(row);
    if (this.#digests.get(sessionId) === (digest ?? undefined)) return;
    this.forget(sessionId);
    if (digest === null) return;
    this.#digests.set(sessionId, digest);
    this.#ids.set(digest, (this.#ids.get(digest) ?? new Set()).add(sessionId));
  }

  idsOf(digest: string): Iterable<string> {
    return this.#ids.get(digest) ?? [];
  }

  forget(sessionId: string): void {
    const digest = this.#digests.get(sessionId);
    if (digest === undefined) return;
    this.#digests.delete(sessionId);
    const ids = this.#ids.get(digest);
    ids?.delete(sessionId);
    if (ids?.size === 0) this.#ids.delete(digest);
  }

  clear(): void {
    this.purged.clear();
    this.#ids.clear();
    this.#digests.clear();
  }
}

/** Remembers keyed appends without records, within the limits that apply to every store. */
export class KeyedAppends {
  readonly #bySession: Map<string, Map<string, KeyedAppend>> = new Map();
  readonly #newestMs: Map<string, number> = new Map();

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

  /** Returns the time up to which keys may have been forgotten, or -1 when no key was forgotten. */
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

/**
 * Replaces the log by one with the rows of an image, unfinished purges, and lines of a newer version. Call it under the
 * entries lock.
 */
export function replaceLog(
  { files, folder, codec, agent }: LogReading,
  { rows, keyed, sources }: LogImage,
  removed: readonly string[],
  newer: readonly string[],
): void {
  const line = (change: RowChange): string => `${encodeRowChange(change, codec, agent)}\n`;
  function* lines(): Generator<string> {
    for (const row of rows.values()) {
      const { sessionId } = row;
      const appends = keyed.of(sessionId);
      // Most lines are copied unchanged, to save time. An encoded line must be encoded again with the session's current
      // key.
      if (appends.length === 0 && !codec.isCoded) yield `${lineOfRow(row, codec, agent)}\n`;
      else yield line({ op: "save", rows: [row], keyed: [{ sessionId, appends }] });
    }
    if (removed.length > 0) yield line({ op: "remove", rows: [], removed });
    if (sources.purged.size > 0) yield line({ op: "remove", rows: [], purged: [...sources.purged] });
    for (const one of newer) yield `${one}\n`;
  }
  replaceFile(files, folder.temporary("entries.log"), folder.entriesLog, (append) => gather(lines(), append));
}

export function lengthOf(
  { rows, keyed, sources }: LogImage,
  { codec, agent }: Pick<LogReading, "codec" | "agent">,
): number {
  let bytes = 0;
  for (const row of rows.values()) bytes += Buffer.byteLength(lineOfRow(row, codec, agent)) + 1;
  for (const { appends } of keyed) bytes += Buffer.byteLength(JSON.stringify(appends));
  return bytes + JSON.stringify([...sources.purged]).length;
}

export interface LogLine {
  /** Holds the readable changes of the line. An intact line has one, an unreadable one none. */
  readonly decoded: readonly DecodedChange[];
  /** Holds the unreadable text, which is empty when only zeros are left. Null means that no text is lost. */
  readonly lost: string | null;
  /** Is true when the line contains zeros, as after a power cut; such a line may never have been acknowledged. */
  readonly hasZeros: boolean;
}

/** Matches zeros, or a single byte in place of the line feed behind a change, because a power cut leaves both. */
const betweenChanges = /\0+|(?<=\}).(?=\{"v":1,"op":"|$)/;

/**
 * Reads a line that may contain zeros. A power cut leaves them where a line's size reached the disk and its bytes, or
 * line feeds, did not. A single zero between complete changes was a line feed.
 */
export function readLogLine(
  bytes: Uint8Array,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): LogLine {
  const text = Buffer.from(bytes).toString();
  // The checksum is computed once, because it takes a third of the time to read a long log.
  const checksums = checksumsOf(text);
  const isWrong = checksums !== null && checksums.stated !== checksums.actual;
  const whole = isWrong ? null : decodeRowChange(text, codec, agent, checksums);
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

export function logLineFinding({ decoded, lost }: LogLine, place: Parameters<typeof createFinding>[2]): Finding | null {
  if (lost !== null && !hasWrongChecksum(lost))
    return createFinding("ENTRY_UNREADABLE", "A line of the entries log cannot be read.", place);
  if (lost === null && decoded.every(({ isChecksumRight }) => isChecksumRight)) return null;
  return createFinding("CHECKSUM_MISMATCH", "A line of the entries log does not fit its checksum.", place);
}

/** Names a session by the text of a broken line, in which the id or the key may be damaged. */
interface NamedSession {
  readonly sessionId: string;
  readonly key: string;
}

interface Suspect extends NamedSession {
  /** Is null when the line contains zeros, because such a line may never have been acknowledged. */
  readonly line: number | null;
  readonly hasLaterId: boolean;
  readonly hasLaterKey: boolean;
}

export interface SuspectSession {
  readonly row: SessionRow | null;
  readonly line: number | null;
}

export class LogDamage {
  /** Is true when the log lost a line, so it may have named more sessions. */
  isThere = false;
  /** Is true when a line is damaged or of a newer version. Such lines must not be dropped by a compaction. */
  hasUnread = false;
  /** Holds complete lines of a newer version that no later line supersedes. A rewritten log keeps them. */
  newer: string[] = [];
  /** States the last damaged line, counted from 1; null when only power cuts damaged the log. */
  line: number | null = null;
  #suspects: Suspect[] = [];

  note(
    read: LogLine,
    place: { readonly path: string; readonly line: number; readonly byteOffset: number },
    onFinding: (finding: Finding) => void,
  ): void {
    this.add(read, place.line);
    const finding = logLineFinding(read, place);
    if (finding !== null) onFinding(finding);
  }

  /**
   * Records the damage of line number `line`. A complete line of a newer version counts as unread, but not as damaged.
   */
  add({ lost, hasZeros }: LogLine, line: number): void {
    if (lost === null) return;
    this.hasUnread = true;
    if (parseObject(lost) !== null && !hasWrongChecksum(lost)) return void this.newer.push(lost);
    this.isThere = true;
    if (!hasZeros) this.line = line;
    const at = { line: hasZeros ? null : line, hasLaterId: false, hasLaterKey: false };
    for (const named of sessionsNamed(lost)) this.#suspects.push({ ...named, ...at });
  }

  /**
   * Returns the sessions whose newest line may be broken. A line whose id and key belong to two sessions may concern
   * either.
   */
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

  /** Drops suspects that a later line supersedes, because a line states everything about its session. */
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

/**
 * Extracts the sessions that a broken line names. The origin of a fork has its agent before it, and is skipped because
 * the line is not about it.
 */
function sessionsNamed(line: string): readonly NamedSession[] {
  const rows = [...line.matchAll(namedRow)].filter(([, agent]) => agent === undefined);
  if (rows.length > 0) return rows.map(([, , key = "", sessionId = ""]) => ({ sessionId, key }));
  const key = /"key":"([^"\\]*)"/.exec(line)?.[1] ?? "";
  const ids = [...line.matchAll(/"sessionId":"([^"\\]+)"/g)].map(([, sessionId = ""]) => sessionId);
  return (ids.length === 0 ? [""] : ids).map((sessionId) => ({ sessionId, key }));
}
