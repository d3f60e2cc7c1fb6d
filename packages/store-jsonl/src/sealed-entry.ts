import { hasErrorCode, type SessionEntry, type ThroughlineError } from "@throughline/core";

/** The entry of a row: as it is, or as what is known of one that cannot be decoded. `entryOf` gives it or fails. */
export type KeptEntry = SessionEntry | SealedEntry | SealedChange;

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

/** @throws {ThroughlineError} CODEC_FAILED when it cannot be decoded */
export function entryOf({ entry }: WithEntry): SessionEntry {
  return entry instanceof SealedEntry || entry instanceof SealedChange ? entry.open() : entry;
}

/** Null when it cannot be decoded. */
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
    if (hasErrorCode(error, "CODEC_FAILED")) return otherwise(error);
    throw error;
  }
}
