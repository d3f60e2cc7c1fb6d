import { hasErrorCode, type SessionEntry, type ThroughlineError } from "@throughline/core";
import { entrySourceDigest, refused } from "@throughline/core/internal";

/** Holds the entry of a row, or a stand-in for one that cannot be read. `entryOf` returns the entry or throws. */
export type KeptEntry = SessionEntry | UndecodableEntry | UndecodableChange | DamagedEntry;

interface WithEntry {
  readonly entry: KeptEntry;
}

/**
 * Stands for an entry of the log that the codec could not decode. Its text is kept and written unchanged. Each use
 * tries to decode it again, because the codec may get its key later.
 */
export class UndecodableEntry {
  readonly coded: string;
  /** The text is bound to this session key, so it is useless after a rename. */
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
 * Stands for an entry with undecodable patches in the transcript. Each fold tries them again. Such an entry is never
 * written, because its revision would claim to include the patches.
 */
export class UndecodableChange {
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

/**
 * Stands for the entry of a session whose newest log line does not fit its checksum. A repair restores the rest of it.
 */
export class DamagedEntry {
  readonly under: SessionEntry;
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
  const isUndecodable =
    entry instanceof UndecodableEntry || entry instanceof UndecodableChange || entry instanceof DamagedEntry;
  return isUndecodable ? entry.open() : entry;
}

export function readableEntry(row: WithEntry): SessionEntry | null {
  return unlessUndecodable(
    () => entryOf(row),
    () => null,
  );
}

/** Returns the digest of the source that the entry states; null without one, and for an unreadable entry. */
export function sourceDigestOf(row: WithEntry): string | null {
  const entry = readableEntry(row);
  return entry === null ? null : entrySourceDigest(entry);
}

/**
 * Removes the stand-in for undecodable patches. The patches stay in the transcript, and their revisions stay above the
 * row's.
 */
export function withoutUndecodableChange<Row extends WithEntry>(row: Row): Row {
  return row.entry instanceof UndecodableChange ? { ...row, entry: row.entry.under } : row;
}

export function unlessUndecodable<T, Other>(decode: () => T, otherwise: (error: ThroughlineError) => Other): T | Other {
  try {
    return decode();
  } catch (error) {
    if (hasErrorCode(error, "CODEC_FAILED", "STORE_CORRUPT")) return otherwise(error);
    throw error;
  }
}
