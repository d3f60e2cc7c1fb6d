import {
  fileIdsOf,
  assertKnownOptions,
  isBlobNote,
  loadExisting,
  type RecordSource,
  serializeRecord,
  type SourcedRecord,
  throughlineKind,
} from "@throughline/core/internal";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { attachEnvelope, encodeLine } from "@throughline/openclaw-format/internal";
import { foreignFormats } from "@throughline/foreign-formats";
import type { ForeignFormatName } from "@throughline/foreign-formats/internal";
import { claw0Lines } from "./export-claw0.ts";
import { foreignParts } from "./export-foreign.ts";
import { otlpLines } from "@throughline/telemetry";
import { exportTable, workingDirectoryOf, type ExportOptions } from "./export-types.ts";
import { asPiRecord } from "./pi-message.ts";
import { supersededCount, importedRecords, noteSeqs, receiptChain, type ImportReceipt } from "./import-receipt.ts";
import { UnknownRows } from "./unknown-rows.ts";

/** Groups small parts into pieces of about this size, so that consumers get few large writes. */
const pieceBytes = 64 * 1024;

/**
 * Writes the session as a file, in pieces, from its records at the start of the export. Records that are appended
 * meanwhile are not included.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, ABORTED
 */
export async function* exportSession(
  store: SessionStore,
  ref: SessionRef,
  options: ExportOptions,
): AsyncGenerator<Uint8Array> {
  assertKnownOptions<ExportOptions>("exportSession", options, exportTable);
  yield* sessionPieces(store, ref, options);
}

/** Writes the pieces of `exportSession` without the option check, which callers have done. */
export async function* sessionPieces(
  store: SessionStore,
  ref: SessionRef,
  options: ExportOptions,
): AsyncGenerator<Uint8Array> {
  let piece: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const part of partsOf(store, ref, options)) {
    piece.push(part);
    sizeBytes += part.length;
    if (sizeBytes < pieceBytes) continue;
    yield Buffer.concat(piece);
    piece = [];
    sizeBytes = 0;
  }
  if (sizeBytes > 0) yield Buffer.concat(piece);
}

const lineFeed = encodeLine("\n");

function partsOf(store: SessionStore, ref: SessionRef, options: ExportOptions): AsyncGenerator<Uint8Array> {
  const foreign = foreignFormats.get(options.to as ForeignFormatName);
  if (foreign !== undefined) return foreignParts(store, ref, foreign, options);
  if (options.to === "otlp-json") return otlpParts(store, ref, options);
  return options.to === "claw0" ? claw0Parts(store, ref, options) : exportedParts(store, ref, options);
}

async function* otlpParts(store: SessionStore, ref: SessionRef, options: ExportOptions): AsyncGenerator<Uint8Array> {
  await loadExisting(store, ref);
  const { includeContent = false } = options;
  for await (const line of otlpLines(store, ref, { includeContent, ...signalOf(options) })) yield encodeLine(line);
}

async function* claw0Parts(store: SessionStore, ref: SessionRef, options: ExportOptions): AsyncGenerator<Uint8Array> {
  for await (const line of claw0Lines(store, ref, options)) yield* withLineFeed(line);
}

async function* exportedParts(
  store: SessionStore,
  ref: SessionRef,
  options: ExportOptions,
): AsyncGenerator<Uint8Array> {
  const state = await loadExisting(store, ref);
  const isExact = options.to === "jsonl";
  const unknown = options.to === "openclaw" ? new UnknownRows() : null;
  const receipts = receiptChain(state.entry);
  const { lastSeq, headId } = state.head;
  const [newest] = receipts;
  const tracker = new HeadTracker(newest);
  const importedSeq = newest === undefined ? 0 : importedRecords(newest);
  const notes = new Set(receipts.flatMap(noteSeqs));
  const continued = new Map(receipts.flatMap((receipt) => receipt.continued ?? []).map((line) => [line.id, line]));
  let lastLineSeq = lastSeq;
  while (notes.has(lastLineSeq)) lastLineSeq -= 1;
  // An imported file consists of its bytes alone. A session created here gets the header that its own file has.
  const oldest = receipts.at(-1);
  const isOwn = oldest === undefined || oldest.hasOwnHeader === true || isForeignName(oldest.format);
  let needsHeader = !isExact || isOwn;
  const read = {
    payload: "source",
    beforeSeq: lastSeq + 1,
    ...signalOf(options),
  } as const;
  for await (const page of store.read(ref, read)) {
    for (const stored of page.records) {
      if (notes.has(stored.seq)) continue;
      tracker.take(stored);
      const growth = isExact ? continued.get(stored.id) : undefined;
      if (growth !== undefined && growth.rest === undefined) {
        const reason = "the beginning of a line that was imported while it was being written; the whole line follows";
        options.onRemark?.({ seq: stored.seq, id: stored.id, what: "left-out", reason });
        continue;
      }
      const line = isExact
        ? exactLine(stored)
        : versionThreeLine(stored, state, { options, needsHeader, unknown, importedSeq });
      if (line === null) continue;
      if (needsHeader && stored.record.type !== "session") yield* addedHeader(state, options);
      needsHeader = false;
      yield encodeLine(line);
      for (const _id of fileIdsOf(stored.record))
        options.onRemark?.({ seq: stored.seq, id: stored.id, what: "left-out", reason: "the bytes of a stored file" });
      if (growth?.rest !== undefined && !isForeign(stored)) yield encodeLine(growth.rest);
      const mayEndOpen = isExact && stored.seq >= lastLineSeq && !isForeign(stored);
      if (!mayEndOpen || !hasOpenEnd(receipts, lastLineSeq)) yield lineFeed;
    }
  }
  if (needsHeader) yield* addedHeader(state, options);
  const shownHeadId = unknown?.linked(headId) ?? headId;
  const name = options.to === "pi" ? newName(state, tracker) : null;
  if (tracker.needsLeaf(headId))
    yield* addedLeaf(state, options, { headId: shownHeadId, lastTimestamp: tracker.lastTimestamp });
  if (name !== null) yield* addedName(state, options, { name, lastTimestamp: tracker.lastTimestamp });
}

/** Returns the name that a person gave the session; null when the file ends with it. */
function newName({ entry: { label } }: SessionState, { lastName }: HeadTracker): string | null {
  return typeof label === "string" && label !== "" && label !== lastName ? label : null;
}

/** pi keeps a session's name in a row, and continues from the row above the newest one. */
function* addedName(
  { head, sessionId, createdAtMs }: SessionState,
  options: ExportOptions,
  { name, lastTimestamp }: { readonly name: string; readonly lastTimestamp: string },
): Generator<Uint8Array> {
  options.onRemark?.({ seq: null, id: null, what: "added", reason: "a row with the name of the session" });
  const id = `name-${head.lastSeq}-${sessionId.slice(0, 64)}`;
  const timestamp = lastTimestamp === "" ? new Date(createdAtMs).toISOString() : lastTimestamp;
  yield* withLineFeed(serializeRecord({ type: "session_info", id, parentId: head.headId, timestamp, name }));
}

/** A line of another program covers records that are lines of Throughline, so the records are written. */
function exactLine(stored: SourcedRecord): RecordSource {
  return isForeign(stored) ? serializeRecord(stored.record) : stored.source;
}

function isForeign({ record, isSourceCanonical }: SourcedRecord): boolean {
  return typeof record["sourceFormat"] === "string" && !isSourceCanonical;
}

/** True if the imported file ended at this record without a line feed and no record followed. */
function hasOpenEnd(receipts: readonly ImportReceipt[], lastLineSeq: number): boolean {
  return receipts.some((receipt) => {
    const notesBefore = noteSeqs(receipt).filter((seq) => seq < lastLineSeq).length;
    const linesSeq = receipt.recordCount + supersededCount(receipt) + notesBefore;
    return !receipt.endsWithLineFeed && linesSeq === lastLineSeq;
  });
}

function isForeignName(format: string): boolean {
  return (foreignFormats as ReadonlyMap<string, unknown>).has(format);
}

function signalOf({ signal }: ExportOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Readers find the head by these side records of other programs. */
const rowsOfLeaf: ReadonlySet<string> = new Set(["label", "session_info", "usage"]);

/** Follows the head that a reader of the file computes. If the session's head differs, the file must name it. */
class HeadTracker {
  lastTimestamp = "";
  /** States the newest name that a row of pi gives the session. */
  lastName = "";
  /**
   * Follows Throughline's rule for lines of other programs: main records move the head. Leaf rows and rows with another
   * parent set it.
   */
  private headId: string | null = null;
  /** Follows pi's rule: the main record at or above the last row is the head. */
  private leafId: string | null = null;
  private readonly mainOfSide = new Map<string, string | null>();
  /** Records up to this seq came from a file. */
  private readonly importedSeq: number;
  /** Holds the head that the import read; a leaf row may name a record that does not exist. */
  private readonly statedHeadId: string | null | undefined;
  private isUntouched = true;
  private importedHeadId: string | null = null;

  constructor(receipt: ImportReceipt | undefined) {
    this.importedSeq = receipt === undefined ? 0 : importedRecords(receipt);
    this.statedHeadId = receipt?.headId;
  }

  take({ record, side, seq }: SourcedRecord): void {
    const { parentId } = record;
    this.lastTimestamp = record.timestamp;
    if (record.type === "session_info") this.lastName = typeof record["name"] === "string" ? record["name"] : "";
    if (side) {
      const main =
        parentId !== null && this.mainOfSide.has(parentId) ? (this.mainOfSide.get(parentId) ?? null) : parentId;
      this.mainOfSide.set(record.id, main);
      if (record.type !== "session") this.leafId = main;
      const target = record["targetId"];
      if (record.type === "leaf" && (target === null || typeof target === "string")) this.headId = target;
      else if (record["appendMode"] !== "side" && rowsOfLeaf.has(record.type)) this.headId = main ?? this.headId;
    } else {
      this.headId = record.id;
      this.leafId = record.id;
    }
    if (seq <= this.importedSeq) this.importedHeadId = this.headId;
    else this.isUntouched = false;
  }

  /** An imported file without additions needs no leaf row, because its readers find the head as before. */
  needsLeaf(headId: string | null): boolean {
    const { statedHeadId = this.importedHeadId } = this;
    if (this.isUntouched && headId === statedHeadId) return false;
    return headId !== this.headId || headId !== this.leafId;
  }
}

interface LineContext {
  readonly options: ExportOptions;
  readonly needsHeader: boolean;
  /** Null for pi, which accepts a record without a parent. */
  readonly unknown: UnknownRows | null;
  readonly importedSeq: number;
}

function versionThreeLine(
  stored: SourcedRecord,
  state: SessionState,
  { options, needsHeader, unknown, importedSeq }: LineContext,
): RecordSource | null {
  const { record, source, seq } = stored;
  if (record.type === "session") {
    if (needsHeader) return headerLine(stored, state, options);
    options.onRemark?.({ seq, id: record.id, what: "left-out", reason: "a second header" });
    return null;
  }
  if (throughlineKind(record) === "unparsed") {
    const { reason } = record["data"] as { readonly reason?: unknown };
    options.onRemark?.({ seq, id: record.id, what: "left-out", reason: `not a record: ${String(reason)}` });
    return null;
  }
  if (isBlobNote(record)) {
    options.onRemark?.({
      seq,
      id: record.id,
      what: "left-out",
      reason: "a field of the entry, which belongs in the index",
    });
    return null;
  }
  // Lines of pi and OpenClaw are written byte for byte, so that their programs read what they wrote.
  const isTheirs = seq <= importedSeq && typeof record["sourceFormat"] !== "string";
  const { record: fitted, added } = isTheirs ? { record, added: null } : asPiRecord(record);
  if (added !== null) options.onRemark?.({ seq, id: record.id, what: "added", reason: added });
  const line = fitted === record ? stored : { ...stored, record: fitted, isSourceCanonical: false };
  if (unknown !== null) return unknown.lineOf(line);
  return line.isSourceCanonical ? source : serializeRecord(fitted);
}

/** Keeps a header that states version 3, or version 4 for OpenClaw, unless the caller asks for another session id. */
function headerLine(stored: SourcedRecord, state: SessionState, options: ExportOptions): RecordSource {
  const { record, source } = stored;
  const version = record["version"];
  const isKept = typeof source === "string" && (version === 3 || (version === 4 && options.to === "openclaw"));
  if (isKept && options.sessionId === undefined) return source;
  const { type: _type, id: _id, parentId: _parentId, timestamp, sessionId, version: _version, cwd, ...rest } = record;
  return serializeRecord({
    type: "session",
    version: 3,
    id: options.sessionId ?? (typeof sessionId === "string" ? sessionId : state.sessionId),
    timestamp,
    cwd: workingDirectoryOf(cwd, state.entry, options),
    ...rest,
  });
}

function* addedHeader(state: SessionState, options: ExportOptions): Generator<Uint8Array> {
  if (options.to === "jsonl") return yield* withLineFeed(ownHeader(state));
  const cwd = workingDirectoryOf(null, state.entry, options);
  const reason = cwd === "" ? "a header" : `a header, with the folder ${JSON.stringify(cwd)}`;
  options.onRemark?.({ seq: null, id: null, what: "added", reason });
  yield* withLineFeed(serializeRecord(headerFields(state, cwd, options.sessionId)));
}

function headerFields(
  { sessionId, createdAtMs, ref }: SessionState,
  cwd: string = "",
  statedId?: string,
): Readonly<Record<string, unknown>> {
  return {
    type: "session",
    version: 3,
    id: statedId ?? sessionId,
    timestamp: new Date(createdAtMs).toISOString(),
    cwd,
    key: ref.key,
  };
}

/**
 * Throughline's files begin with a header that is no record, so the records keep their seq when the file is imported.
 */
function ownHeader(state: SessionState): string {
  return attachEnvelope(serializeRecord(headerFields(state)), { seq: 0 });
}

/** States the head in a row: OpenClaw follows the row, and pi takes the branch of the last row. */
function* addedLeaf(
  { head, sessionId }: SessionState,
  options: ExportOptions,
  { headId, lastTimestamp }: { readonly headId: string | null; readonly lastTimestamp: string },
): Generator<Uint8Array> {
  options.onRemark?.({ seq: null, id: null, what: "added", reason: "a leaf row: the head is not at the last record" });
  const id = `leaf-${head.lastSeq}-${sessionId.slice(0, 64)}`;
  const timestamp = lastTimestamp;
  yield* withLineFeed(serializeRecord({ type: "leaf", id, parentId: headId, timestamp, targetId: headId }));
}

function* withLineFeed(line: string): Generator<Uint8Array> {
  yield encodeLine(line);
  yield lineFeed;
}
