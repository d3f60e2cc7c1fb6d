import {
  createWorkSlices,
  fewerSteps,
  isBlobNote,
  isTombstone,
  loadExisting,
  type RecordSource,
  type SourcedRecord,
  systemRandom,
} from "@throughline/core/internal";
import {
  type ReadOptions,
  readWindow,
  type SessionRecord,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { type ForeignFormat, foreignFormats, type FormatWriter } from "@throughline/foreign-formats";
import {
  type ForeignFormatName,
  type FormatLoss,
  isUuid,
  type WrittenSession,
} from "@throughline/foreign-formats/internal";
import { encodeLine } from "@throughline/openclaw-format/internal";
import { InlineFiles } from "./inline-files.ts";
import { documentSource } from "./one-line-source.ts";
import { workingDirectoryOf, type ExportOptions, type ExportRemark } from "./export-types.ts";
import { noteSeqs, receiptChain } from "./import-receipt.ts";

function isSourceOf(format: string, { record, isSourceCanonical }: SourcedRecord): boolean {
  return record["sourceFormat"] === format && !isSourceCanonical;
}

/**
 * Writes a session in the file format of another program. Items that came from that program are written byte for byte,
 * and messages added here follow in its format. For any other session the conversation is converted, and content that
 * the format cannot hold is reported.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, RECORD_FROM_NEWER_VERSION, ABORTED
 */
export async function* foreignParts(
  store: SessionStore,
  ref: SessionRef,
  format: ForeignFormat,
  options: ExportOptions,
): AsyncGenerator<Uint8Array> {
  const state = await loadExisting(store, ref);
  const { writer } = format;
  const inline = new InlineFiles({ store, ref, random: systemRandom, ...signalOf(options) });
  const isMadeAnew = await cannotContinue(store, ref, format, options);
  const file = new SourceFileParts(format, state, options);
  const read = { payload: "source", beforeSeq: state.head.lastSeq + 1, ...signalOf(options) } as const;
  if (!isMadeAnew && file.laterHeadId !== null) yield* file.open(await recordById(store, ref, file.laterHeadId, read));
  for await (const page of isMadeAnew ? [] : store.read(ref, read)) {
    for (const stored of page.records) yield* file.parts(stored);
    // The first page decides: the items of a session from another source never match the format.
    if (!file.hasSources) break;
  }
  if (!file.hasSources) {
    if (writer === undefined) return;
    const found = writer.writesHistory ? await allRecords(store, ref, options) : await window(store, ref);
    const session = writtenSession(format.name, state, await inline.records(found), options);
    for await (const text of inSlices(wholeText(writer, session, options))) yield* inline.written(encodeLine(text));
    return;
  }
  file.reportNotes();
  const { own, writtenSeq, newName } = file;
  if ((own.length === 0 && newName === null) || writer === undefined) return yield* file.end();
  const records = await inline.records(joined(await window(store, ref), own));
  const { lastUnit } = file;
  const written = writtenSession(format.name, state, records, options, writtenSeq);
  const session = { ...written, label: newName, lastUnit };
  for await (const text of inSlices(writer.write(session, lossReport(options))))
    for (const piece of file.add(text)) yield* inline.written(piece);
  yield* file.closeDocument();
}

async function recordById(
  store: SessionStore,
  ref: SessionRef,
  id: string,
  read: ReadOptions<"source">,
): Promise<SourcedRecord | null> {
  for await (const page of store.read(ref, read)) {
    const found = page.records.find((stored) => stored.id === id);
    if (found !== undefined) return found;
  }
  return null;
}

/** Writes a session from another source: lines, or a document with a list of elements. */
function* wholeText(
  writer: FormatWriter,
  session: WrittenSession,
  options: ExportOptions,
): Generator<string | undefined> {
  const { head = "", tail = "" } = writer.frame?.(session) ?? {};
  yield head;
  let isFirst = true;
  for (const text of writer.write(session, lossReport(options))) {
    if (text === undefined) {
      yield;
      continue;
    }
    if (writer.frame !== undefined && !isFirst) yield ",";
    isFirst = false;
    yield writer.frame === undefined ? text : `\n${text}`;
  }
  yield tail;
}

/** Pauses between the writer's steps, so that a long export does not block the event loop. */
async function* inSlices(texts: Iterable<string | undefined>): AsyncGenerator<string> {
  const slices = createWorkSlices();
  for (const text of texts) {
    if (text !== undefined) yield text;
    const pause = slices.next(text === undefined ? fewerSteps : 1);
    if (pause !== undefined) await pause;
  }
}

/**
 * True when no file exists that could be continued: the items are rows of a database. The same holds for a document
 * with added messages, when the format writes files of lines.
 */
async function cannotContinue(
  store: SessionStore,
  ref: SessionRef,
  { name, writer, database }: ForeignFormat,
  options: ExportOptions,
): Promise<boolean> {
  if (writer === undefined || (writer.frame !== undefined && database === undefined)) return false;
  let isDocument = false;
  for await (const page of store.read(ref, signalOf(options))) {
    for (const { record, side } of page.records) {
      const isOfFormat = record["sourceFormat"] === name;
      const isRow = isOfFormat && !isDocument && record["documentPart"] !== "head" && database !== undefined;
      if (isRow) return true;
      isDocument ||= isOfFormat && record["documentPart"] === "head";
      if (writer.frame === undefined && isDocument && !isOfFormat && !side && !isTombstone(record)) return true;
    }
    // The head of a document is its first record, so the first page decides.
    if (!isDocument || writer.frame !== undefined) return false;
  }
  return false;
}

const lineFeed = encodeLine("\n");

class SourceFileParts {
  hasSources = false;
  /** Marks the last record that was imported; later records were added here. */
  writtenSeq = 0;
  /** Holds the records that were added here. */
  readonly own: StoredRecord[] = [];
  readonly #format: string;
  readonly #nameIn: FormatWriter["nameIn"];
  readonly #label: string | null;
  /** Holds every name that the file gives the session. */
  readonly #names = new Set<string>();
  readonly #options: ExportOptions;
  readonly #continued: ReadonlyMap<string, { readonly rest?: string }>;
  readonly #notes: ReadonlySet<number>;
  readonly #endsOpen: boolean;
  /** Names the record of the text before a document's list, when it was stored after its elements; null otherwise. */
  readonly laterHeadId: string | null;
  readonly #isText: boolean;
  /** Holds the last item of a text; empty for other layouts. */
  lastUnit = "";
  #isLineOpen = false;
  #noteCount = 0;
  /**
   * Holds the separator between the elements of a document; null outside a document. The text behind the list is
   * written last.
   */
  #separator: string | null = null;
  #tail: RecordSource | null = null;

  constructor({ name, writer }: ForeignFormat, { entry }: SessionState, options: ExportOptions) {
    const receipts = receiptChain(entry);
    this.#format = name;
    this.#nameIn = writer?.nameIn;
    this.#label = typeof entry.label === "string" && entry.label !== "" ? entry.label : null;
    this.#isText = writer?.isText === true;
    this.#options = options;
    this.#notes = new Set(receipts.flatMap(noteSeqs));
    this.#continued = new Map(receipts.flatMap(({ continued = [] }) => continued).map((line) => [line.id, line]));
    this.#endsOpen = receipts[0]?.endsWithLineFeed === false;
    const hadHeads = receipts[0]?.continued?.some(({ line }) => line === 1) === true;
    this.laterHeadId = hadHeads ? (receipts[0]?.list?.head?.id ?? null) : null;
  }

  /** Returns the name that a person gave the session here; null when the file has it already. */
  get newName(): string | null {
    return this.#nameIn === undefined || this.#label === null || this.#names.has(this.#label) ? null : this.#label;
  }

  *open(head: SourcedRecord | null): Generator<Uint8Array> {
    if (head !== null && head.record["documentPart"] === "head") yield* this.#piece(head.record, head.source);
  }

  *parts(stored: SourcedRecord): Generator<Uint8Array> {
    const { seq, id, record, side, source } = stored;
    if (this.#notes.has(seq) || isBlobNote(record)) return;
    const name = this.#nameIn?.(record) ?? null;
    if (name !== null) this.#names.add(name);
    if (isSourceOf(this.#format, stored)) {
      this.hasSources = true;
      this.writtenSeq = seq;
      const continued = this.#continued.get(id);
      const isElsewhere = id === this.laterHeadId || (continued !== undefined && continued.rest === undefined);
      if (isElsewhere) return;
      if (this.#isText) {
        const piece = encodeLine(documentSource(source));
        this.lastUnit = new TextDecoder().decode(piece);
        return yield piece;
      }
      if (record["documentPart"] === "head" || this.#separator !== null) return yield* this.#piece(record, source);
      yield* this.endLine();
      yield encodeLine(source);
      if (continued?.rest !== undefined) yield encodeLine(continued.rest);
      this.#isLineOpen = true;
    } else if (record["derivedFrom"] !== undefined && record["sourceFormat"] === this.#format) {
      this.writtenSeq = seq;
    } else if (!this.hasSources) {
      return;
    } else if (isTombstone(record)) {
      this.#remark({ seq, id, what: "left-out", kind: "redacted message", reason: "redacted message" });
    } else if (side) this.#noteCount += 1;
    else this.own.push(stored);
  }

  /** The text behind a document's list is held back until no element can follow. */
  *#piece({ documentPart }: SessionRecord, source: RecordSource): Generator<Uint8Array> {
    const bytes = documentSource(source);
    if (documentPart === "tail") {
      this.#tail = bytes;
      return;
    }
    yield encodeLine(bytes);
    if (documentPart === "head") this.#separator = "";
    else this.#separator = separatorOf(bytes);
  }

  *add(text: string): Generator<Uint8Array> {
    if (this.#separator === null) yield* this.endLine();
    else yield encodeLine(this.#separator);
    yield encodeLine(text);
    if (this.#separator === "") this.#separator = ",";
  }

  *closeDocument(): Generator<Uint8Array> {
    if (this.#tail !== null) yield encodeLine(this.#tail);
  }

  /** The line feed is written before the next line, because the imported last line may have had none. */
  *endLine(): Generator<Uint8Array> {
    if (this.#isLineOpen) yield lineFeed;
    this.#isLineOpen = false;
  }

  *end(): Generator<Uint8Array> {
    yield* this.closeDocument();
    if (!this.#endsOpen) yield* this.endLine();
  }

  reportNotes(): void {
    const records = this.#noteCount;
    const kind = "note of Throughline";
    if (records > 0) this.#remark({ seq: null, id: null, what: "left-out", kind, reason: kind, records });
  }

  #remark(remark: ExportRemark): void {
    this.#options.onRemark?.(remark);
  }
}

function separatorOf(source: RecordSource): string {
  const text = typeof source === "string" ? source : Buffer.from(source).toString("latin1");
  return `,${/^[\s,]{0,200}/.exec(text)?.[0].replaceAll(",", "") ?? ""}`;
}

async function allRecords(
  store: SessionStore,
  ref: SessionRef,
  options: ExportOptions,
): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, signalOf(options))) records.push(...page.records);
  return records;
}

async function window(store: SessionStore, ref: SessionRef): Promise<readonly StoredRecord[]> {
  return (await readWindow(store, ref)).records;
}

function joined(records: readonly StoredRecord[], own: readonly StoredRecord[]): readonly StoredRecord[] {
  const bySeq = new Map([...records, ...own].map((stored) => [stored.seq, stored]));
  return [...bySeq.values()].toSorted((one, other) => one.seq - other.seq);
}

/** Keeps the id the session had in that program. Otherwise derives one in the form that the program accepts. */
export function foreignSessionId(
  format: ForeignFormatName,
  { entry, sessionId, createdAtMs }: SessionState,
  options: ExportOptions,
): string {
  const receipt = receiptChain(entry)[0];
  const stated = options.sessionId ?? (receipt?.format === format ? receipt.sessionId : undefined);
  if (stated !== undefined) return stated;
  if (isUuid(sessionId)) return sessionId;
  return foreignFormats.get(format)?.writer?.sessionId({ sessionId, createdAtMs }) ?? sessionId;
}

function writtenSession(
  format: ForeignFormatName,
  state: SessionState,
  records: readonly StoredRecord[],
  options: ExportOptions,
  writtenSeq?: number,
): WrittenSession {
  const { entry, head, createdAtMs } = state;
  const { label, title } = entry;
  return {
    records,
    headId: head.headId,
    sessionId: foreignSessionId(format, state, options),
    cwd: workingDirectoryOf(null, entry, options),
    label: typeof label === "string" ? label : null,
    title: typeof title === "string" ? title : null,
    createdAtMs,
    ...(writtenSeq === undefined ? {} : { writtenSeq }),
  };
}

function lossReport({ onRemark }: ExportOptions): { readonly onLoss: (loss: FormatLoss) => void } {
  return {
    onLoss: ({ what, kind, recordId, records = 1 }) =>
      onRemark?.({
        seq: null,
        id: recordId,
        what: what === "made" ? "added" : what,
        kind,
        reason: kind,
        records: what === "left-out" ? records : 0,
      }),
  };
}

function signalOf({ signal }: ExportOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
