import { setImmediate as pause } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { createFinding, type FindingCode, isErasedPayload, type RecordSource } from "@throughline/core/internal";
import type { Finding, SessionRecord } from "@throughline/core";
import { createLineSplitter, createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import type { SplitLine, TranscriptLine } from "@throughline/openclaw-format/internal";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isOwnHeader } from "./line-damage.ts";
import { type OwnLine, readSealedText, type StoreEnvelope } from "./store-envelope.ts";
import { unlessUndecodable } from "./undecodable-entry.ts";
import { readOwnRow, wholeIfOurs } from "./transcript-lines.ts";
import { decodeStoredLine, type LineCodec, type LineOwner, type StoredLine } from "./stored-line.ts";

export interface SurveyTarget {
  readonly files: Files;
  readonly path: string;
  readonly owner: LineOwner;
  readonly codec: LineCodec;
  readonly maxLineBytes: number;
  /** States the last seq that the index or the log proves as acknowledged, because the file may have lost its end. */
  readonly acknowledgedSeq: number;
  readonly isFull: boolean;
  /** Is called regularly; throws when the caller no longer wants the rest. */
  goOn(): void;
}

export interface SurveyedLine {
  readonly line: number;
  readonly byteOffset: number;
  readonly sizeBytes: number;
  readonly isTerminated: boolean;
  readonly bytes: Uint8Array;
  /**
   * Holds the text without envelope, byte order mark and carriage returns. Invalid UTF-8 becomes replacement
   * characters.
   */
  readonly text: string;
  /** Is true when the line consists of exactly this text and an envelope. */
  readonly isClean: boolean;
  readonly envelope: StoreEnvelope | null;
  readonly isIntact: boolean;
  /**
   * States the condition of a header that a Throughline store wrote; null for all other lines. Such a header is not a
   * record.
   */
  readonly ownHeader: "whole" | "damaged" | null;
  readonly read: TranscriptLine;
}

const chunkBytes = 1024 * 1024;

/**
 * Yields every line of a transcript and reports its problems to `say`. It pauses between chunks, so that other work can
 * run.
 */
export async function* surveyLines(
  target: SurveyTarget,
  say: (finding: Finding) => void,
): AsyncGenerator<SurveyedLine> {
  const { files, path, owner } = target;
  const handle = openIfThere(files, path);
  if (handle === null) return;
  const { maxLineBytes } = target;
  const reader = createTranscriptReader({ path, key: owner.ref.key, sessionId: owner.sessionId, maxLineBytes });
  const read = (from: number, to: number): Uint8Array => withFileErrors(path, () => readRange(files, handle, from, to));
  let said = 0;
  const sayNew = (recordId: string | null): void => {
    for (const finding of reader.findings.slice(said))
      if (isMeant(finding, target)) say({ ...finding, recordId: finding.recordId ?? recordId });
    said = reader.findings.length;
  };
  try {
    const splitter = createLineSplitter({ maxLineBytes });
    let line = 0;
    const take = (split: SplitLine): SurveyedLine => {
      const surveyed = survey(target, reader, wholeIfOurs(read, split), ++line, say);
      sayNew(hasSeq(surveyed) ? surveyed.read.record.id : null);
      return surveyed;
    };
    for (let position = 0; ;) {
      target.goOn();
      const bytes = read(position, position + chunkBytes);
      if (bytes.length === 0) break;
      for (const split of splitter.push(bytes)) yield take(split);
      position += bytes.length;
      await pause();
    }
    const last = splitter.end();
    if (last !== null) yield take(last);
    reader.finish();
    sayNew(null);
  } finally {
    files.close(handle);
  }
}

function survey(
  target: SurveyTarget,
  reader: ReturnType<typeof createTranscriptReader>,
  { bytes, byteOffset, sizeBytes, isTerminated }: SplitLine,
  line: number,
  say: (finding: Finding) => void,
): SurveyedLine {
  const { path, owner, codec, isFull } = target;
  const source = decodeLine(bytes);
  const cleaned = cleanText(source);
  const asItIs =
    cleaned === source || typeof source !== "string" ? null : ownLineOf(readSealedText(source), codec, owner);
  // The line was imported with its carriage return, which the checksum covers, so no other program added it.
  const isMadeSo = asItIs !== null && asItIs.envelope.enc === undefined && asItIs.crc === asItIs.actualCrc();
  const clean = isMadeSo && typeof source === "string" ? source : cleaned;
  const sealed = readSealedText(clean);
  const { text, isIntact } = sealed ?? { text: clean, isIntact: true };
  const envelope = sealed === null ? null : believedEnvelope(sealed);
  const own = isMadeSo ? asItIs : typeof source === "string" ? ownLineOf(sealed, codec, owner) : null;
  const isHeader = line === 1 && isOwnHeader(sealed, { isTerminated, bytes: () => bytes });
  const ownHeader = !isHeader ? null : isSoundHeader(text) ? "whole" : "damaged";
  const place = { line, byteOffset, isTerminated };
  // The rest of a damaged header must not become a record, because other records would get it as a parent.
  // A sound header with a damaged envelope is read without the envelope, whose broken name may spoil the line's JSON.
  const soundSource = ownHeader === "whole" && !isIntact ? text : source;
  const shown = ownHeader === "damaged" ? plainHeader(owner.sessionId) : soundSource;
  const read =
    own !== null && clean === source
      ? readOwnRow(reader, text, { ...place, envelope })
      : reader.push(shown, { ...place, sizeBytes });
  const report = (code: FindingCode, message: string): void =>
    say(createFinding(code, message, { path, key: owner.ref.key, line, byteOffset, recordId: read.record.id }));
  if (bytes.at(-1) === 0x0d && !isMadeSo) report("CARRIAGE_RETURN", "The line ends with a carriage return.");
  const isHeaderEdited = isHeader && envelope?.crc !== undefined && envelope.crc !== crc32(text);
  if (!isIntact || isHeaderEdited || ownHeader === "damaged")
    report("CHECKSUM_MISMATCH", `Line ${line} does not fit its checksum.`);
  else if (own?.crc != null && own.crc !== own.actualCrc())
    report("CHECKSUM_MISMATCH", `Record ${read.record.id} does not fit its checksum.`);
  else if (isFull)
    unlessUndecodable(
      () => own?.payload(),
      (error) =>
        isErasedPayload(error)
          ? undefined
          : report("STORE_DAMAGED", `Record ${read.record.id} cannot be read: ${error.message}`),
    );
  const isClean = clean === source;
  return { line, byteOffset, sizeBytes, isTerminated, bytes, text, isClean, envelope, isIntact, ownHeader, read };
}

function isSoundHeader(text: string): boolean {
  return createTranscriptReader().push(text, { line: 1, byteOffset: 0, envelope: null }).isHeader;
}

function plainHeader(id: string): string {
  return JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd: "" });
}

export function hasSeq({ ownHeader }: Pick<SurveyedLine, "ownHeader">): boolean {
  return ownHeader === null;
}

function ownLineOf(line: OwnLine | null, codec: LineCodec, owner: LineOwner): StoredLine | null {
  return line === null || line.envelope.seq === 0 ? null : decodeStoredLine(line, codec, owner);
}

/** Returns a damaged envelope as it is, without the size of its append. A wrong size would report missing records. */
function believedEnvelope({ envelope, isIntact }: OwnLine): StoreEnvelope {
  if (isIntact) return envelope;
  const { batch: [index, count] = [1, 1], ...others } = envelope;
  return withoutStrangeNumbers(index === count ? envelope : others);
}

/** Drops numbers that JSON cannot hold or that no member has, such as the time `17e600`, so that a copy can be read. */
function withoutStrangeNumbers(envelope: StoreEnvelope): StoreEnvelope {
  const { seq, ...others } = envelope;
  const kept = Object.entries(others).filter(([, value]) => typeof value !== "number" || Number.isSafeInteger(value));
  return { ...Object.fromEntries(kept), seq };
}

function cleanText(source: RecordSource): string {
  const text = typeof source === "string" ? source : Buffer.from(source).toString();
  let end = text.length;
  while (text[end - 1] === "\r") end -= 1;
  return text.slice(text.startsWith("\ufeff") ? 1 : 0, end);
}

/** Drops findings about content, because it cannot be seen in an encoded line. */
function isMeant({ code }: Finding, { codec }: SurveyTarget): boolean {
  return !codec.isCoded || code === "LINE_MALFORMED" || code === "TAIL_TORN" || code === "DUPLICATE_ID";
}

export class ParentSurvey {
  readonly #parents: Map<string, string | null> = new Map();
  /** Caches roots, so that a long chain of parents is not walked for every record. */
  readonly #jumps: Map<string, string> = new Map();

  add({ id, parentId }: Pick<SessionRecord, "id" | "parentId">): void {
    this.#parents.set(id, parentId);
  }

  has(id: string): boolean {
    return this.#parents.has(id);
  }

  attach(id: string, parentId: string | null): void {
    this.#parents.set(id, parentId);
  }

  rootOf(id: string, ends: ReadonlySet<string>): string {
    const way: string[] = [];
    let at = id;
    for (;;) {
      const next: string | null | undefined = ends.has(at) ? null : (this.#jumps.get(at) ?? this.#parents.get(at));
      if (typeof next !== "string" || !this.#parents.has(next)) break;
      way.push(at);
      at = next;
    }
    for (const each of way) this.#jumps.set(each, at);
    return at;
  }

  cycles(): ReadonlySet<string> {
    const found = new Set<string>();
    const settled = new Set<string>();
    for (const start of this.#parents.keys()) {
      const way = new Set<string>();
      let id: string | null | undefined = start;
      while (typeof id === "string" && !settled.has(id) && !way.has(id)) {
        way.add(id);
        id = this.#parents.get(id);
      }
      if (typeof id === "string" && way.has(id)) found.add(id);
      for (const each of way) settled.add(each);
    }
    return found;
  }
}
