import type { PayloadCodec, SessionEntry, SessionState } from "@throughline/core";
import type { LinkedRecord, ReadPayload, RecordFor } from "@throughline/core/internal";
import {
  createRowCoder,
  type KeptPayload,
  type PayloadPlace,
  type RecordRow,
  type RedactionInfo,
  type RowCoder,
} from "./row-coder.ts";
import { sessionState } from "./session-frame.ts";
import type { KeptRecord, KeptSession } from "./store-backend.ts";

/**
 * Marks bytes that are kept as base64. JSON never starts with this character. An imported line may, and `isSourceText`
 * then decides.
 */
const mark = "=";

function keptText(payload: KeptPayload): string {
  return typeof payload === "string" ? payload : mark + Buffer.from(payload).toString("base64");
}

function keptPayload(text: string): KeptPayload {
  return text.startsWith(mark) ? Buffer.from(text.slice(mark.length), "base64") : text;
}

function textRow(row: RecordRow): KeptRecord {
  const { text, source } = row;
  if (typeof text === "string" && (source === null || typeof source === "string")) return row as KeptRecord;
  return { ...row, text: keptText(text), source: source === null ? null : keptText(source) };
}

/** Converts records, entries and open replies to texts and back, so that the rows of a backend are plain JSON. */
export class SessionCoder {
  readonly #coder: RowCoder;
  readonly #hasCodec: boolean;

  constructor(codec: PayloadCodec | undefined) {
    this.#coder = createRowCoder(codec);
    this.#hasCodec = codec !== undefined;
  }

  /** Returns the row of a new record. */
  encode(
    place: PayloadPlace,
    item: LinkedRecord,
    at: { readonly seq: number; readonly storedAtMs: number },
  ): KeptRecord {
    return textRow(this.#coder.encodeRecord(place, item, at));
  }

  /** Returns the record of a row, with the content that `payload` selects. */
  decode<Payload extends ReadPayload>(place: PayloadPlace, row: KeptRecord, payload: Payload): RecordFor<Payload> {
    return this.#coder.decodeRecord(place, this.#recordRow(row), payload);
  }

  /** Returns the row of the tombstone that replaces a record; null when the record is a tombstone already. */
  redact(place: PayloadPlace, row: KeptRecord, info: RedactionInfo): KeptRecord | null {
    const redacted = this.#coder.redactRecord(place, this.#recordRow(row), info);
    return redacted === null ? null : textRow(redacted);
  }

  #recordRow(row: KeptRecord): RecordRow {
    const { text, source, isSourceText } = row;
    if (!this.#hasCodec && (source === null || isSourceText) && !text.startsWith(mark)) return row;
    const isPlain = source === null || (isSourceText && !this.#hasCodec);
    return { ...row, text: keptPayload(text), source: isPlain ? source : keptPayload(source) };
  }

  /** Returns the text of an entry. */
  entryText(place: PayloadPlace, entry: SessionEntry): string {
    return keptText(this.#coder.encodeEntry(place, entry));
  }

  /** Returns the entry of a session. */
  entry({ row, entry }: KeptSession): SessionEntry {
    return this.#coder.decodeEntry(row, keptPayload(entry));
  }

  /** Returns a session in the form that callers get. */
  state(found: KeptSession): SessionState {
    const { ref, sessionId, revision, head, createdAtMs, updatedAtMs, messageCount } = found.row;
    const frame = { ref, sessionId, revision, head, createdAtMs, updatedAtMs };
    return sessionState(frame, this.entry(found), messageCount);
  }

  /** Returns the text of an open reply. */
  partialText(place: PayloadPlace, turnId: string, text: string): string {
    return keptText(this.#coder.encodePartial(place, turnId, text));
  }

  /** Returns the JSON of an open reply. */
  partial(place: PayloadPlace, turnId: string, text: string): string {
    return this.#coder.decodePartial(place, turnId, keptPayload(text));
  }
}
