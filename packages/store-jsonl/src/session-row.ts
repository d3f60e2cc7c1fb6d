import { crc32 } from "node:zlib";
import type { SessionEntry, SessionHead, SessionRef } from "@throughline/core";
import { defaultIdempotency, refused } from "@throughline/core/internal";
import type { PayloadCoder } from "@throughline/store-kit/internal";
import { parseObject } from "./json-members.ts";
import type { FlushedRecords } from "./flushed-seqs.ts";
import {
  DamagedEntry,
  entryOf,
  readableEntry,
  UndecodableEntry,
  unlessUndecodable,
  type KeptEntry,
} from "./undecodable-entry.ts";
import { parseDecoded, type LineCodec } from "./stored-line.ts";
import type { StoreEnvelope } from "./store-envelope.ts";

export interface SessionRow {
  readonly sessionId: string;
  readonly key: string;
  readonly revision: number;
  readonly entry: KeptEntry;
  readonly createdAtMs: number;
  /**
   * States when a session from elsewhere came to this store. It orders the session against resets by other programs.
   */
  readonly broughtAtMs?: number;
  /** States the last activity, in milliseconds since 1970. */
  readonly updatedAtMs: number;
  readonly isArchived: boolean;
  readonly fileName: string;
  /**
   * States the name before the session was archived or restored. The rename comes after the commit, and may not have
   * happened.
   */
  readonly formerFileName?: string;
  /** Lists the sessions whose records a fork shares, each with its last shared seq. The direct origin comes first. */
  readonly origins?: readonly (readonly [sessionId: string, seq: number])[];
  /** Holds the head after an append without records. It applies while the transcript ends at its `lastSeq`. */
  readonly savedHead?: SessionHead;
  /**
   * Is true when the transcript may not exist yet. Another program may have written the entry before the first message.
   * Or a power cut took a session that was created with a durability below `disk`. The field is dropped once anything
   * was acknowledged at `disk`.
   */
  readonly isUnflushed?: true;
}

/** Returns the possible names of a transcript. A rename comes after its line in the log, and may not have happened. */
export function fileNamesOf({ fileName, formerFileName }: SessionRow): readonly string[] {
  return formerFileName === undefined ? [fileName] : [fileName, formerFileName];
}

type RowOperation = "save" | "archive" | "restore" | "rename" | "reset" | "adopt" | "catch-up" | "fork" | "remove";

/** Holds one line of the entries log: the new rows, and purged sessions as in `LogImage.removed`. */
export interface RowChange {
  readonly op: RowOperation;
  readonly rows: readonly SessionRow[];
  readonly removed?: readonly string[];
  /** Holds new keyed appends without records, of sessions among the rows. Those of earlier lines stay. */
  readonly keyed?: readonly SessionKeys[];
  /** Holds purged sources, by their digests, with the time of the purge. The mark stays when the session is gone. */
  readonly purged?: readonly (readonly [digest: string, atMs: number])[];
}

/** Stores a head as a tuple, because thousands may be kept. */
export type KeptHead = readonly [
  lastSeq: SessionHead["lastSeq"],
  headId: SessionHead["headId"],
  windowSeq: SessionHead["windowSeq"],
  fence: SessionHead["fence"],
  turn: SessionHead["turn"],
];

/**
 * Stores an append without records that had an idempotency key, because no transcript line can carry the key. Older
 * versions wrote no time, and the oldest wrote no head.
 */
export type KeyedAppend = readonly [key: string, digest: string, revision: number, head?: KeptHead, atMs?: number];

export interface SessionKeys {
  readonly sessionId: string;
  readonly appends: readonly KeyedAppend[];
}

/** Returns 0 for an append that an older version wrote without a time. */
export function timeOf(append: KeyedAppend | undefined): number {
  return append?.[4] ?? 0;
}

/** Returns the time after which appends are kept regardless of their number. */
export function keptSinceMs(newestMs: number): number {
  return newestMs - defaultIdempotency.rememberedMs;
}

/**
 * Returns the time up to which keys may have been forgotten once the memory is full. It is at most the oldest kept
 * time, and keys within the retention time are never forgotten.
 */
export function horizonOf(oldestMs: number, newestMs: number): number {
  return Math.min(oldestMs, keptSinceMs(newestMs));
}

export interface LogPlace {
  readonly identity: string;
  readonly endBytes: number;
  readonly lineCount: number;
  /** Fingerprints the last bytes before the end, to distinguish a log that grew from another one. */
  readonly anchor: { readonly from: number; readonly crc: number };
  readonly removed: readonly string[];
}

export interface LogStanding {
  readonly log: LogPlace;
  /**
   * Returns false once another log replaced this one. The read part is outdated then, and may contain purged sessions.
   */
  isCurrent(): boolean;
  isOfLog(place: LogPlace): boolean;
}

export interface TranscriptDigest {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  /** States where the line of the window's first record starts; absent when that is unknown. */
  readonly windowAt?: number | undefined;
}

export interface SessionSnapshot {
  readonly row: SessionRow;
  readonly folded: SessionRow;
  readonly digest: TranscriptDigest;
  /** Holds the transcript's identity, size and time. If any differs now, the snapshot is outdated. */
  readonly seen: string;
  /** Holds the entry of `folded` as JSON in a snapshot of a page of the index; absent in others. */
  readonly entryText?: string;
  /**
   * Returns when this store last changed the entry; lines of another program do not count.
   * @default the time of the last activity
   */
  readonly entryAtMs?: () => number;
  /** States which records this process has flushed. @default no record is proven */
  readonly flushed?: FlushedRecords;
}

export function entryTextOf({ folded, entryText = JSON.stringify(readableEntry(folded)) }: SessionSnapshot): string {
  return entryText;
}

export function entryBytesOf(seen: SessionSnapshot): number {
  return Buffer.byteLength(entryTextOf(seen));
}

const logVersion = 1;

// Keeps the line that a row was read from or written as, because under a codec each encoding differs.
const lines = new WeakMap<SessionRow, string>();

/** Returns the row as a separate line. It is the same text on each call, so that the index can compare it. */
export function lineOfRow(row: SessionRow, codec: LineCodec, agent: Pick<SessionRef, "namespace" | "agentId">): string {
  return lines.get(row) ?? encodeRowChange({ op: "save", rows: [row] }, codec, agent);
}

/** Encodes the change as one line without a line feed. The first row is inlined, because most changes have one. */
export function encodeRowChange(
  change: RowChange,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): string {
  const [first, ...others] = change.rows.map((row) => ({ ...rowFields(row, codec, agent), ...keyedOf(change, row) }));
  const also = others.length === 0 ? {} : { also: others };
  const removed = change.removed === undefined ? {} : { removed: change.removed };
  const purged = change.purged === undefined ? {} : { purged: change.purged };
  const text = JSON.stringify({ v: logVersion, op: change.op, ...first, ...also, ...removed, ...purged });
  return keepLine(change, withChecksum(text));
}

function keyedOf({ keyed = [] }: RowChange, row: SessionRow): { readonly keyed?: readonly KeyedAppend[] } {
  const found = keyed.find(({ sessionId }) => sessionId === row.sessionId);
  return found === undefined ? {} : { keyed: found.appends };
}

function keepLine({ rows: [row, ...others], removed, keyed, purged }: RowChange, line: string): string {
  const isPlain = removed === undefined && keyed === undefined && purged === undefined;
  if (row !== undefined && others.length === 0 && isPlain) lines.set(row, line);
  return line;
}

export interface DecodedChange {
  readonly change: RowChange;
  readonly isChecksumRight: boolean;
}

export function withChecksum(json: string): string {
  return `${json.slice(0, -1)},"crc":${crc32(json)}}`;
}

/**
 * Parses a text of `withChecksum`, or one of an earlier version without a checksum.
 * @throws {SyntaxError} where it is damaged
 */
export function parseChecked(json: string): unknown {
  if (hasWrongChecksum(json)) throw new SyntaxError("The text does not fit its checksum.");
  return JSON.parse(json);
}

interface Checksums {
  readonly stated: number;
  readonly actual: number;
}

/** Returns the stated and the actual checksum of a line, or null for a line without one. */
export function checksumsOf(line: string): Checksums | null {
  const found = /,"crc":(\d+)\}$/.exec(line);
  return found === null ? null : { stated: Number(found[1]), actual: crc32(`${line.slice(0, found.index)}}`) };
}

export function hasWrongChecksum(line: string): boolean {
  const checksums = checksumsOf(line);
  return checksums !== null && checksums.stated !== checksums.actual;
}

/** Returns null for a line of a newer version, and for text that is not a change. */
export function decodeRowChange(
  line: string,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
  checksums: Checksums | null = checksumsOf(line),
): DecodedChange | null {
  const fields = parseObject(line);
  if (fields === null || fields["v"] !== logVersion || typeof fields["op"] !== "string") return null;
  const also = Array.isArray(fields["also"]) ? (fields["also"] as unknown[]) : [];
  const values = [...(fields["sessionId"] === undefined ? [] : [fields]), ...also];
  const rows = values.map((one) => rowFrom(one, codec, agent));
  if (rows.some((row) => row === null)) return null;
  const removed = Array.isArray(fields["removed"]) ? { removed: fields["removed"] as string[] } : {};
  const keyed = values.flatMap(keyedFrom);
  const purged = Array.isArray(fields["purged"])
    ? { purged: fields["purged"] as NonNullable<RowChange["purged"]> }
    : {};
  const change = {
    op: fields["op"] as RowOperation,
    rows: rows.filter((row) => row !== null),
    ...removed,
    ...(keyed.length === 0 ? {} : { keyed }),
    ...purged,
  };
  const isChecksumRight = checksums !== null && checksums.stated === checksums.actual;
  if (isChecksumRight) keepLine(change, line);
  return { change, isChecksumRight };
}

function keyedFrom(value: unknown): readonly SessionKeys[] {
  const { sessionId, keyed } = value as Readonly<Record<string, unknown>>;
  return Array.isArray(keyed) ? [{ sessionId: String(sessionId), appends: keyed as readonly KeyedAppend[] }] : [];
}

/** Splits a patch into fields that are set and names of fields that are removed, because JSON has no undefined. */
export function patchMembers(patch: Readonly<Record<string, unknown>>): {
  readonly set: Readonly<Record<string, unknown>>;
  readonly unset: readonly string[];
} {
  const fields = Object.entries(patch);
  return {
    set: Object.fromEntries(fields.filter(([, value]) => value !== undefined)),
    unset: fields.filter(([, value]) => value === undefined).map(([field]) => field),
  };
}

export function encodeEntry(coder: PayloadCoder, value: unknown, ref: SessionRef, sessionId: string): string {
  return Buffer.from(coder.encode(JSON.stringify(value), { ref, sessionId, id: ref.key, part: "entry" })).toString(
    "base64",
  );
}

/**
 * @throws {ThroughlineError} CODEC_FAILED, also for a value that is not an object: a wrong codec need not fail, but may
 * return nonsense
 */
function decodeEntry(
  coder: PayloadCoder,
  coded: string,
  ref: SessionRef,
  sessionId: string,
): Readonly<Record<string, unknown>> {
  const plain = coder.decode(new Uint8Array(Buffer.from(coded, "base64")), {
    ref,
    sessionId,
    id: ref.key,
    part: "entry",
  });
  const value = parseDecoded(Buffer.from(plain).toString(), "entry", ref.key);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw refused("CODEC_FAILED", `The entry of ${ref.key} is not what this codec has written.`, { part: "entry" });
}

/** Decodes a patch. Removed fields are undefined. @throws {ThroughlineError} CODEC_FAILED */
export function decodePatch(
  coder: PayloadCoder,
  { entryEnc: coded, entry, unset }: StoreEnvelope,
  ref: SessionRef,
  sessionId: string,
): Readonly<Record<string, unknown>> {
  const patch = coded === undefined ? { set: entry, unset } : decodeEntry(coder, coded, ref, sessionId);
  const removed = Array.isArray(patch["unset"]) ? (patch["unset"] as readonly string[]) : [];
  return { ...(patch["set"] as object | undefined), ...Object.fromEntries(removed.map((field) => [field, undefined])) };
}

function rowFields(
  row: SessionRow,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): Readonly<Record<string, unknown>> {
  const { entry: kept, sessionId, key, ...fields } = row;
  // A text that is bound to another key cannot be decoded, so it must be encoded again.
  if (kept instanceof UndecodableEntry && kept.key === key) return { key, sessionId, ...fields, entryEnc: kept.coded };
  const [entry, damage] = kept instanceof DamagedEntry ? [kept.under, { damagedLine: kept.line }] : [entryOf(row), {}];
  if (!codec.isCoded) return { key, sessionId, ...fields, ...damage, entry };
  return {
    key,
    sessionId,
    ...fields,
    ...damage,
    entryEnc: encodeEntry(codec.coder, entry, { ...agent, key }, sessionId),
  };
}

function rowFrom(
  value: unknown,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): SessionRow | null {
  if (typeof value !== "object" || value === null) return null;
  const row = value as Readonly<Record<string, unknown>>;
  const { sessionId, key, revision, fileName } = row;
  if (
    typeof sessionId !== "string" ||
    typeof key !== "string" ||
    typeof revision !== "number" ||
    typeof fileName !== "string"
  )
    return null;
  const kept = entryFrom(row, codec, { ...agent, key }, sessionId);
  if (kept === null) return null;
  const line = row["damagedLine"];
  const entry = typeof line === "number" && !(kept instanceof UndecodableEntry) ? new DamagedEntry(kept, line) : kept;
  return {
    sessionId,
    key,
    revision,
    fileName,
    entry,
    createdAtMs: Number(row["createdAtMs"] ?? 0),
    updatedAtMs: Number(row["updatedAtMs"] ?? 0),
    isArchived: row["isArchived"] === true,
    ...(typeof row["broughtAtMs"] === "number" ? { broughtAtMs: row["broughtAtMs"] } : {}),
    ...(row["isUnflushed"] === true ? { isUnflushed: true } : {}),
    ...(typeof row["formerFileName"] === "string" ? { formerFileName: row["formerFileName"] } : {}),
    ...(typeof row["savedHead"] === "object" && row["savedHead"] !== null
      ? { savedHead: row["savedHead"] as SessionHead }
      : {}),
    ...(Array.isArray(row["origins"]) ? { origins: row["origins"] as NonNullable<SessionRow["origins"]> } : {}),
  };
}

function entryFrom(
  { entry, entryEnc: coded }: Readonly<Record<string, unknown>>,
  codec: LineCodec,
  ref: SessionRef,
  sessionId: string,
): SessionEntry | UndecodableEntry | null {
  if (typeof coded !== "string") return typeof entry === "object" && entry !== null ? { ...entry, sessionId } : null;
  const decode = (): SessionEntry => ({ ...decodeEntry(codec.coder, coded, ref, sessionId), sessionId });
  return unlessUndecodable(decode, () => new UndecodableEntry(coded, ref.key, decode));
}
