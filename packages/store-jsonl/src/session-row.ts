import { crc32 } from "node:zlib";
import type { SessionEntry, SessionHead, SessionRef } from "@throughline/core";
import { defaultIdempotency, refused } from "@throughline/core/internal";
import { type PayloadCoder } from "@throughline/store-kit/internal";
import { parseObject } from "./json-members.ts";
import type { FlushedRecords } from "./flushed-seqs.ts";
import { DamagedEntry, entryOf, SealedEntry, unlessSealed, type KeptEntry } from "./sealed-entry.ts";
import { parseDecoded, type LineCodec } from "./stored-line.ts";
import type { StoreEnvelope } from "./store-envelope.ts";

/** What is known of a session beside its records. */
export interface SessionRow {
  /** The session's id. */
  readonly sessionId: string;
  /** The session's key. */
  readonly key: string;
  readonly revision: number;
  readonly entry: KeptEntry;
  readonly createdAtMs: number;
  /** When it came here, of a session that began elsewhere. */
  readonly broughtAtMs?: number;
  /** Its last activity, in milliseconds since 1970. */
  readonly updatedAtMs: number;
  /** True for a session that no longer holds its key. */
  readonly isArchived: boolean;
  /** The transcript's name in the sessions folder. */
  readonly fileName: string;
  /** The name it had before it was archived or restored: renaming comes after the commit and may not have happened. */
  readonly formerFileName?: string;
  /** Of a fork: the sessions whose records it has, and up to which seq; the one it was made from first. */
  readonly origins?: readonly (readonly [sessionId: string, seq: number])[];
  /** Where appends without records left the head; taken over when the transcript stands at its `lastSeq`. */
  readonly savedHead?: SessionHead;
  /**
   * There may be no transcript yet: another program wrote the entry before the first message, or the session was made with less
   * than `disk` and a power cut took it. Gone once something was acknowledged at `disk`.
   */
  readonly isUnflushed?: true;
}

type RowOperation = "save" | "archive" | "restore" | "rename" | "reset" | "adopt" | "catch-up" | "fork" | "remove";

/** One line of the entries log: rows as they are from now on, and what was purged, as `LogImage.removed`. */
export interface RowChange {
  readonly op: RowOperation;
  readonly rows: readonly SessionRow[];
  /** Also what their transcripts are called, where that is something else than the id. */
  readonly removed?: readonly string[];
  /** Of sessions among the rows: keyed appends without records that come with the line. Those of earlier lines stay. */
  readonly keyed?: readonly SessionKeys[];
}

/** A head in its shortest form: thousands may be kept. */
export type KeptHead = readonly [
  lastSeq: SessionHead["lastSeq"],
  headId: SessionHead["headId"],
  windowSeq: SessionHead["windowSeq"],
  fence: SessionHead["fence"],
  turn: SessionHead["turn"],
];

/**
 * An append without records that had an idempotency key, and what came of it. There is no line in the transcript for the
 * key to travel in. One that an older version wrote has no time, the oldest no head.
 */
export type KeyedAppend = readonly [key: string, digest: string, revision: number, head?: KeptHead, atMs?: number];

/** Keyed appends of one session, the oldest first. */
export interface SessionKeys {
  readonly sessionId: string;
  readonly appends: readonly KeyedAppend[];
}

/** When the append was made; 0 where that is not known. */
export function timeOf(append: KeyedAppend | undefined): number {
  return append?.[4] ?? 0;
}

/** What is newer stays when one of this time is added, however many there are. */
export function keptSinceMs(newestMs: number): number {
  return newestMs - defaultIdempotency.rememberedMs;
}

/** Of what is full: whatever was forgotten is no newer than the oldest that is left, and than what is kept for its time alone. */
export function horizonOf(oldestMs: number, newestMs: number): number {
  return Math.min(oldestMs, keptSinceMs(newestMs));
}

/** Up to where in the entries log the index knows everything. */
export interface LogPlace {
  readonly identity: string;
  readonly endBytes: number;
  readonly lineCount: number;
  /** The last bytes before the end, to tell a log that grew from another one. */
  readonly anchor: { readonly from: number; readonly crc: number };
  /** Purges that may be unfinished. */
  readonly removed: readonly string[];
}

/** Up to where a log is known, and how to tell what belongs to it. */
export interface LogStanding {
  readonly log: LogPlace;
  /** False once another log has its name: what is known of this one is old then, and may have been purged. */
  isCurrent(): boolean;
  /** Whether a place the index knows is one of this log. */
  isOfLog(place: LogPlace): boolean;
}

/** What listing needs of a transcript. */
export interface TranscriptDigest {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  /** Where the line of the window's first record begins; absent where nobody knows. */
  readonly windowAt?: number | undefined;
}

/** What is known of a session whose transcript was read. */
export interface SeenSession {
  readonly row: SessionRow;
  /** The row with the entry changes that lie in the transcript. */
  readonly folded: SessionRow;
  readonly digest: TranscriptDigest;
  /** Identity, size and time of the transcript all this was read from. */
  readonly seen: string;
  /** What this process has put on the disk of it. @default nothing that is known */
  readonly flushed?: FlushedRecords;
}

const logVersion = 1;

// The line a row was written as or read from: under a codec it is another one each time it is made.
const lines = new WeakMap<SessionRow, string>();

/** The row as a line of its own, the same text whenever it is asked for. */
export function lineOfRow(row: SessionRow, codec: LineCodec, agent: Pick<SessionRef, "namespace" | "agentId">): string {
  return lines.get(row) ?? encodeRowChange({ op: "save", rows: [row] }, codec, agent);
}

/** The change as one line without line feed. The first row lies at the top: most changes have one. */
export function encodeRowChange(
  change: RowChange,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): string {
  const [first, ...others] = change.rows.map((row) => ({ ...rowFields(row, codec, agent), ...keyedOf(change, row) }));
  const also = others.length === 0 ? {} : { also: others };
  const removed = change.removed === undefined ? {} : { removed: change.removed };
  const text = JSON.stringify({ v: logVersion, op: change.op, ...first, ...also, ...removed });
  return keepLine(change, withChecksum(text));
}

function keyedOf({ keyed = [] }: RowChange, row: SessionRow): { readonly keyed?: readonly KeyedAppend[] } {
  const found = keyed.find(({ sessionId }) => sessionId === row.sessionId);
  return found === undefined ? {} : { keyed: found.appends };
}

function keepLine({ rows: [row, ...others], removed, keyed }: RowChange, line: string): string {
  if (row !== undefined && others.length === 0 && removed === undefined && keyed === undefined) lines.set(row, line);
  return line;
}

export interface DecodedChange {
  readonly change: RowChange;
  readonly isChecksumRight: boolean;
}

/** An object's JSON with its checksum as the last member. */
export function withChecksum(json: string): string {
  return `${json.slice(0, -1)},"crc":${crc32(json)}}`;
}

/** The object of a JSON text that `withChecksum` made, or an earlier version without it. @throws {SyntaxError} where it is damaged */
export function parseChecked(json: string): unknown {
  if (hasWrongChecksum(json)) throw new SyntaxError("The text does not fit its checksum.");
  return JSON.parse(json);
}

/** The checksum that a line of the log states, and the one that it has; null where it states none. */
function checksumsOf(line: string): { readonly stated: number; readonly actual: number } | null {
  const found = /,"crc":(\d+)\}$/.exec(line);
  return found === null ? null : { stated: Number(found[1]), actual: crc32(`${line.slice(0, found.index)}}`) };
}

/** Whether a line of the log is another than was written. */
export function hasWrongChecksum(line: string): boolean {
  const checksums = checksumsOf(line);
  return checksums !== null && checksums.stated !== checksums.actual;
}

/** Null when the line is no change of a version this build reads. */
export function decodeRowChange(
  line: string,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): DecodedChange | null {
  const fields = parseObject(line);
  if (fields === null || fields["v"] !== logVersion || typeof fields["op"] !== "string") return null;
  const checksums = checksumsOf(line);
  const also = Array.isArray(fields["also"]) ? (fields["also"] as unknown[]) : [];
  const values = [...(fields["sessionId"] === undefined ? [] : [fields]), ...also];
  const rows = values.map((one) => rowFrom(one, codec, agent));
  if (rows.some((row) => row === null)) return null;
  const removed = Array.isArray(fields["removed"]) ? { removed: fields["removed"] as string[] } : {};
  const keyed = values.flatMap(keyedFrom);
  const change = {
    op: fields["op"] as RowOperation,
    rows: rows.filter((row) => row !== null),
    ...removed,
    ...(keyed.length === 0 ? {} : { keyed }),
  };
  const isChecksumRight = checksums !== null && checksums.stated === checksums.actual;
  if (isChecksumRight) keepLine(change, line);
  return { change, isChecksumRight };
}

function keyedFrom(value: unknown): readonly SessionKeys[] {
  const { sessionId, keyed } = value as Readonly<Record<string, unknown>>;
  return Array.isArray(keyed) ? [{ sessionId: String(sessionId), appends: keyed as readonly KeyedAppend[] }] : [];
}

/** The patch as it travels: fields set, and fields removed by name. */
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
 * @throws {ThroughlineError} CODEC_FAILED, also for a value that is not an object: a wrong codec need not fail, only
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

/** The fields that a change in a transcript sets, and those it removes as undefined. @throws {ThroughlineError} CODEC_FAILED */
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
  // Bound to another key it is of no use to anybody: then it must be coded anew.
  if (kept instanceof SealedEntry && kept.key === key) return { key, sessionId, ...fields, entryEnc: kept.coded };
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
  const entry = typeof line === "number" && !(kept instanceof SealedEntry) ? new DamagedEntry(kept, line) : kept;
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
): SessionEntry | SealedEntry | null {
  if (typeof coded !== "string") return typeof entry === "object" && entry !== null ? { ...entry, sessionId } : null;
  const decode = (): SessionEntry => ({ ...decodeEntry(codec.coder, coded, ref, sessionId), sessionId });
  return unlessSealed(decode, () => new SealedEntry(coded, ref.key, decode));
}
