import { hasErrorCode, type PayloadCodec, type SessionRecord } from "@throughline/core";
import {
  isLostPayload,
  searchIndexText,
  type SearchToken,
  searchText,
  roleToken,
  tokenList,
  toolWord,
} from "@throughline/core/internal";
import { codecTokens, isUndecodedPayload, type RowCoder } from "@throughline/store-kit/internal";
import type Database from "better-sqlite3";
import type { Connection } from "./connection.ts";
import { recordOf, rowOf } from "./record-rows.ts";
import { keptPlaceOf, type Session, type SessionRow } from "./rows.ts";

/** Holds the words of a record as the index has them. */
export interface IndexDocument {
  readonly record: number;
  readonly words: string;
  readonly names: string;
  /** Holds the names of tools, and under a codec the role of the record. */
  readonly tools: string;
  readonly stems: string;
}

/** Holds a record that is to be indexed, or to be removed from the index. */
export interface IndexedRecord {
  readonly record: number;
  /** Counts the characters that were read. */
  readonly size: number;
  /** Holds the words, or null without any. `lost` means that the record does not decode. */
  readonly document: IndexDocument | "lost" | null;
}

/** Reads the words of records from the log. */
export interface IndexTexts {
  next(connection: Connection, afterRecord: number): IndexedRecord | undefined;
  ofSpan(connection: Connection, session: Session, fromSeq: number, toSeq: number): readonly IndexedRecord[];
  /** Returns the tokens of a namespace for a search; null where the index holds words. */
  tokenOf(namespace: string): SearchToken | null;
  /** States whether the codec gives no tokens. Then nothing may be in the index. */
  readonly isOff: boolean;
}

/** Returns the reader of a store with this codec. */
export function indexTexts(codec: PayloadCodec | undefined, rows: RowCoder): IndexTexts {
  return codec === undefined ? new PlainTexts() : new CodedTexts(codec, rows);
}

const textOf =
  "coalesce(p.content, r.text) AS text FROM store_records r LEFT JOIN store_payloads p ON p.payload = r.text_payload";

interface TextRow {
  readonly record: number;
  readonly text: unknown;
}

interface PlainStatements {
  readonly next: Database.Statement<[number], TextRow>;
  readonly ofSpan: Database.Statement<[Session, number, number], TextRow>;
}

class PlainTexts implements IndexTexts {
  readonly isOff = false;
  readonly #prepared = new WeakMap<Connection, PlainStatements>();

  next(connection: Connection, afterRecord: number): IndexedRecord | undefined {
    const row = this.#statements(connection).next.get(afterRecord);
    return row === undefined ? undefined : plainRecord(row);
  }

  ofSpan(connection: Connection, session: Session, fromSeq: number, toSeq: number): readonly IndexedRecord[] {
    return this.#statements(connection).ofSpan.all(session, fromSeq, toSeq).map(plainRecord);
  }

  tokenOf(): null {
    return null;
  }

  #statements(connection: Connection): PlainStatements {
    const known = this.#prepared.get(connection);
    if (known !== undefined) return known;
    const { database } = connection;
    const made: PlainStatements = {
      next: database.prepare(`SELECT r.record, ${textOf} WHERE r.record > ? ORDER BY r.record LIMIT 1`),
      ofSpan: database.prepare(`SELECT r.record, ${textOf} WHERE r.session = ? AND r.seq >= ? AND r.seq <= ?`),
    };
    this.#prepared.set(connection, made);
    return made;
  }
}

/** A damaged record is left to its readers. */
function plainRecord({ record, text }: TextRow): IndexedRecord {
  const isText = typeof text === "string";
  const document = isText ? documentOf(record, parsedRecord(text), null) : null;
  return { record, size: isText ? text.length : 0, document };
}

interface RecordPlace {
  readonly record: number;
  readonly session: Session;
  readonly seq: number;
}

interface CodedStatements {
  readonly next: Database.Statement<[number], RecordPlace>;
  readonly ofSpan: Database.Statement<[Session, number, number], RecordPlace>;
  readonly owner: Database.Statement<[Session], SessionRow>;
}

class CodedTexts implements IndexTexts {
  readonly #codec: PayloadCodec;
  readonly #rows: RowCoder;
  readonly #prepared = new WeakMap<Connection, CodedStatements>();

  constructor(codec: PayloadCodec, rows: RowCoder) {
    this.#codec = codec;
    this.#rows = rows;
  }

  get isOff(): boolean {
    return this.#codec.searchToken === undefined;
  }

  next(connection: Connection, afterRecord: number): IndexedRecord | undefined {
    const place = this.#statements(connection).next.get(afterRecord);
    return place === undefined ? undefined : this.#read(connection, place, isLostPayload);
  }

  /** A record that does not decode now counts as lost, because the index is emptied for it, and filled again later. */
  ofSpan(connection: Connection, session: Session, fromSeq: number, toSeq: number): readonly IndexedRecord[] {
    const places = this.#statements(connection).ofSpan.all(session, fromSeq, toSeq);
    return places.map((place) => this.#read(connection, place, isUndecodedPayload));
  }

  tokenOf(namespace: string): SearchToken {
    return codecTokens(this.#codec, namespace, "search");
  }

  #read(
    connection: Connection,
    { record, session, seq }: RecordPlace,
    isLost: (error: unknown) => boolean,
  ): IndexedRecord {
    const lost = { record, size: 0, document: "lost" } as const;
    if (this.isOff) return lost;
    const owner = this.#statements(connection).owner.get(session);
    const [row] = connection.statements.readRecords.ascending.all(session, seq - 1, seq + 1, 1);
    if (owner === undefined || row === undefined) return lost;
    const place = keptPlaceOf(owner);
    try {
      const stored = recordOf(this.#rows, place, rowOf(connection.statements, session, row), "record");
      const document = documentOf(record, stored.record, codecTokens(this.#codec, place.ref.namespace, "index"));
      return { record, size: stored.bytes, document };
    } catch (error) {
      if (hasErrorCode(error, "STORE_CORRUPT") || isLost(error)) return lost;
      throw error;
    }
  }

  #statements(connection: Connection): CodedStatements {
    const known = this.#prepared.get(connection);
    if (known !== undefined) return known;
    const { database } = connection;
    const columns = "SELECT record, session, seq FROM store_records";
    const made: CodedStatements = {
      next: database.prepare(`${columns} WHERE record > ? ORDER BY record LIMIT 1`),
      ofSpan: database.prepare(`${columns} WHERE session = ? AND seq >= ? AND seq <= ?`),
      owner: database.prepare("SELECT * FROM store_sessions WHERE session = ?"),
    };
    this.#prepared.set(connection, made);
    return made;
  }
}

function documentOf(record: number, content: SessionRecord, token: SearchToken | null): IndexDocument | null {
  const found = searchText(content);
  if (found === null) return null;
  const tools = [...new Set(found.toolNames.map(toolWord))];
  const { words, names, stems } = searchIndexText(found.text);
  if (token === null) return { record, words, names, stems, tools: tools.join(" ") };
  const labels = [...tools.map(token), ...(found.role === null ? [] : [roleToken(found.role, token)])];
  return {
    record,
    words: tokenList(words, token),
    names: tokenList(names, token),
    stems: tokenList(stems, token),
    tools: labels.join(" "),
  };
}

const nothing: SessionRecord = { type: "", id: "", parentId: null, timestamp: "" };

function parsedRecord(text: string): SessionRecord {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as SessionRecord) : nothing;
  } catch {
    // Reads and `verify` report the damage. The index has no words for it.
    return nothing;
  }
}
