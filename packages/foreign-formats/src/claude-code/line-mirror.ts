import { Buffer } from "node:buffer";
import { type AppendDraft, type RecordDraft, type SessionRecord, ThroughlineError } from "@throughline/core";
import { derivedFromOf, parsedFields, type Fields } from "@throughline/core/internal";
import type { UnitPlace } from "../foreign-format.ts";
import { createClaudeCodeReader } from "./read-claude-code.ts";
import { pieceType } from "./line-units.ts";
import { linePieces, shortenedLine } from "./line-pieces.ts";
import type { LinedSession, LoggedLine } from "./logged-lines.ts";

/** Holds lines as drafts, in order. The caller splits them into appends that the store accepts. */
export interface MirroredLines {
  /** Holds the drafts to append, in order; empty when the log had every line. */
  readonly drafts: readonly AppendDraft[];
  /** States the record that the program continues from after all drafts are appended. */
  readonly headId: string | null;
  /** Holds fields of the session's entry, from the lines so far. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** Lists the lines that were new. */
  readonly added: readonly Fields[];
}

/**
 * Converts lines of a running Claude Code to records, in the order of their arrival. The mirror holds the log's state
 * at its creation and the lines pushed since. Create a new mirror when another process has written, or when an append
 * has failed.
 */
export class LineMirror {
  readonly #reader = createClaudeCodeReader({ maxUnitBytes: Infinity });
  /** The log may have stored a record under another id than the reader's, so links are translated. */
  readonly #ids = new Map<string, string>();
  /** The set holds uuids of lines as well as record ids, because either shows that the log has a line. */
  readonly #known = new Set<unknown>();
  /** The log may hold only some pieces of these lines, because the pieces of a line may span several appends. */
  readonly #cut = new Set<unknown>();
  readonly #lineBytes: number;

  /**
   * Creates a mirror of a session's log.
   * @param lines the result of `loggedLines` for the session
   */
  constructor(
    { records }: Pick<LinedSession, "records">,
    lines: readonly LoggedLine[],
    { recordBytes }: { readonly recordBytes: number },
  ) {
    this.#lineBytes = recordBytes - roomBytes;
    for (const { id, record } of records) {
      this.#known.add(id);
      if (typeof record["pieces"] === "number") this.#cut.add(id);
      if (record["customType"] === pieceType) this.#cut.add(derivedFromOf(record)?.id);
    }
    let lastId: string | null = null;
    for (const line of lines) {
      const unit = this.#reader.push(this.#readable(line.value), placeOf(line.first?.seq ?? 0));
      lastId = line.lastId ?? lastId;
      const last = unit.records.findLast(({ type }) => type !== "usage");
      if (line.first !== null) this.#rename(unit.records[0].id, line.first.id);
      if (last !== undefined && lastId !== null && line.first?.side !== true) this.#rename(last.id, lastId);
      if (typeof line.value["uuid"] === "string") this.#known.add(line.value["uuid"]);
    }
  }

  /** Holds fields of the session's entry, from the lines so far. */
  get entry(): Readonly<Record<string, unknown>> {
    return this.#reader.entry;
  }

  /**
   * Returns the drafts of lines. A line whose `uuid` was pushed before gives none.
   * @param lastSeq the seq of the last record before the drafts
   * @throws {ThroughlineError} INPUT_INVALID for a line that is not a JSON object; then nothing is drafted
   */
  push(lines: readonly unknown[], lastSeq: number): MirroredLines {
    const drafts: AppendDraft[] = [];
    const added: Fields[] = [];
    for (const { text, value } of lines.map(lineText)) {
      const { uuid } = value;
      const isKnown = typeof uuid === "string" && this.#known.has(uuid);
      if (isKnown && this.#cut.has(uuid)) drafts.push(...this.#newPieces(text, uuid));
      if (isKnown) continue;
      drafts.push(...this.#line(text, value, lastSeq + 1 + drafts.length));
      added.push(value);
      if (typeof uuid === "string") this.#known.add(uuid);
    }
    const { headId, entry } = this.#reader;
    return { drafts, headId: headId === null ? null : this.#own(headId), entry, added };
  }

  #line(text: string, value: Fields, seq: number): readonly AppendDraft[] {
    const { records } = this.#reader.push(this.#readable(value, text), placeOf(seq));
    const [first, ...derived] = records.map((record) => this.#linked(record)) as [RecordDraft, ...RecordDraft[]];
    const bytes = Buffer.byteLength(text);
    if (bytes <= this.#lineBytes) return [{ source: text, record: first }, ...derived];
    const id = first.id as string;
    this.#cut.add(id);
    const pieces = this.#newPieces(text, id);
    return [{ ...first, pieces: pieces.length, bytes }, ...derived, ...pieces];
  }

  #newPieces(text: string, id: string): readonly RecordDraft[] {
    const pieces = linePieces(text, id, this.#lineBytes).filter((piece) => !this.#known.has(piece.id));
    for (const piece of pieces) this.#known.add(piece.id);
    return pieces;
  }

  /** A line beyond the store's limit is shortened, so that its record fits. */
  #readable(value: Fields, text: string = JSON.stringify(value)): string {
    return Buffer.byteLength(text) <= this.#lineBytes ? text : JSON.stringify(shortenedLine(value));
  }

  #linked(record: SessionRecord): RecordDraft {
    const { parentId } = record;
    const named = ["firstKeptEntryId", "targetId"].flatMap((name) => {
      const id = record[name];
      return typeof id === "string" ? [[name, this.#own(id)] as const] : [];
    });
    return { ...record, ...Object.fromEntries(named), parentId: parentId === null ? null : this.#own(parentId) };
  }

  #rename(id: string, recordId: string): void {
    if (id !== recordId) this.#ids.set(id, recordId);
  }

  #own(id: string): string {
    return this.#ids.get(id) ?? id;
  }
}

/** A store may add fields around a line, which take up to this many bytes. */
const roomBytes = 4096;

function placeOf(line: number): UnitPlace {
  return { line, byteOffset: 0 };
}

/**
 * Returns a line as JSON text and as an object.
 * @throws {ThroughlineError} INPUT_INVALID unless the line is a JSON object
 */
export function lineText(line: unknown, index: number): { readonly text: string; readonly value: Fields } {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(line);
  } catch (error) {
    // The line is circular, or holds a value that JSON cannot represent.
    cause = error;
  }
  const value = text === undefined ? null : parsedFields(text);
  if (text !== undefined && value !== null) return { text, value };
  throw new ThroughlineError("INPUT_INVALID", `Entry ${index} of a transcript must be an object that JSON can hold.`, {
    outcome: "not-applied",
    ...(cause === undefined ? {} : { cause }),
  });
}
