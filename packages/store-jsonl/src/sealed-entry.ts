import { hasErrorCode, type SessionEntry, type ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";

/** The entry of a row: as it is, or as what is known of one that cannot be decoded. `entryOf` gives it or fails. */
export type KeptEntry = SessionEntry | SealedEntry | SealedChange | DamagedEntry;

interface WithEntry {
  readonly entry: KeptEntry;
}

/**
 * An entry of the log that the codec did not decode. Its text is kept as it was, and written so wherever its row is; who
 * needs what it says tries again, for a codec may get its key later.
 */
export class SealedEntry {
  readonly coded: string;
  /** The key of the session that the text is bound to. */
  readonly key: string;
  readonly #decode: () => SessionEntry;

  constructor(coded: string, key: string, decode: () => SessionEntry) {
    this.coded = coded;
    this.key = key;
    this.#decode = decode;
  }

  /** @throws {ThroughlineError} CODEC_FAILED */
  open(): SessionEntry {
    return this.#decode();
  }
}

/**
 * An entry whose changes in the transcript could not be decoded. They are tried again whenever they are folded in; such an
 * entry is never written, for the revision it would be written with would say that they are in it.
 */
export class SealedChange {
  /** The entry without them, of the revision of the row. */
  readonly under: KeptEntry;
  readonly #error: ThroughlineError;

  constructor(under: KeptEntry, error: ThroughlineError) {
    this.under = under;
    this.#error = error;
  }

  /** @throws {ThroughlineError} CODEC_FAILED */
  open(): never {
    throw this.#error;
  }
}

/** The entry of a session whose newest line in the log does not fit its checksum. A repair takes what is left. */
export class DamagedEntry {
  /** The entry as other sources have it. It denies sending. */
  readonly under: SessionEntry;
  /** The number of the line. */
  readonly line: number;

  constructor(under: SessionEntry, line: number) {
    this.under = under;
    this.line = line;
  }

  /** @throws {ThroughlineError} STORE_CORRUPT */
  open(): never {
    const message = `Line ${this.line} of the entries log is damaged, and it was the newest about this session.`;
    throw refused("STORE_CORRUPT", message, { path: "entries.log", line: this.line });
  }
}

/** @throws {ThroughlineError} CODEC_FAILED when it cannot be decoded, STORE_CORRUPT when it is damaged */
export function entryOf({ entry }: WithEntry): SessionEntry {
  const isSealed = entry instanceof SealedEntry || entry instanceof SealedChange || entry instanceof DamagedEntry;
  return isSealed ? entry.open() : entry;
}

/** Null when it cannot be read. */
export function readableEntry(row: WithEntry): SessionEntry | null {
  return unlessSealed(
    () => entryOf(row),
    () => null,
  );
}

/** The row without what could not be folded in: changes in the transcript come after it, as before. */
export function withoutSealedChange<Row extends WithEntry>(row: Row): Row {
  return row.entry instanceof SealedChange ? { ...row, entry: row.entry.under } : row;
}

export function unlessSealed<T, Other>(decode: () => T, otherwise: (error: ThroughlineError) => Other): T | Other {
  try {
    return decode();
  } catch (error) {
    if (hasErrorCode(error, "CODEC_FAILED", "STORE_CORRUPT")) return otherwise(error);
    throw error;
  }
}
