/** `none`: in memory of the process. `process`: survives kill -9. `disk`: survives a power cut. */
export type Durability = "none" | "process" | "disk";

/** The sizes that a store takes at most. */
export interface StoreLimits {
  /** Largest record, in bytes of its line. */
  readonly recordBytes: number;
  /** Most records of one append. */
  readonly batchRecords: number;
  /** Most bytes of one append. */
  readonly batchBytes: number;
  /** Most records of one page. */
  readonly pageRecords: number;
  /** A page ends when it reaches this many bytes, with at least one record; that of a list by its entries, with at least one session. */
  readonly pageBytes: number;
}

/** What a store can do. Declared once, frozen, the same for the life of the handle. */
export interface StoreCapabilities {
  readonly specification: 1;
  /** The store's name, for messages. */
  readonly name: string;
  /** The levels an append may ask for, weakest first. */
  readonly durabilities: readonly Durability[];
  /** What an append gets that does not ask. */
  readonly defaultDurability: Durability;
  /** Whether data outlives the handle. */
  readonly persistent: boolean;
  /** Who may write at once. */
  readonly writers: "one-handle" | "one-host" | "many-hosts";
  /** Whether the store has full-text search. */
  readonly search: boolean;
  /** Whether sessions can be followed. */
  readonly watch: boolean;
  /** Whether forks share records. */
  readonly fork: boolean;
  /** Whether the store can verify, repair and back up itself. */
  readonly maintenance: boolean;
  /** Absent from stores made before it was part of the contract: false. */
  readonly partials?: boolean;
  /** What the store accepts at most. */
  readonly limits: StoreLimits;
  /** How long keyed appends are remembered. */
  readonly idempotency: {
    /** The store remembers at least this number of keyed appends of a session … */
    readonly rememberedAppends: number;
    /** … or those of this time, whichever is more. */
    readonly rememberedMs: number;
  };
}

const mebibyte = 1024 * 1024;

/** The limits of a store that has no smaller ones of its own. */
export const defaultStoreLimits: StoreLimits = Object.freeze({
  recordBytes: 16 * mebibyte,
  batchRecords: 1000,
  batchBytes: 32 * mebibyte,
  pageRecords: 500,
  pageBytes: 2 * mebibyte,
});

/**
 * What one append of a bulk writer (import, copy, fork by copy) holds at most. A torn end takes one batch at most, and an
 * interrupted run resumes at the border of one. Measured against batches of 1,000 records, an import of 100,000 records takes
 * 10 to 25 % longer; batches of 10 take three to four times as long.
 */
const bulkBatch = { records: 100, bytes: mebibyte / 4 } as const;

/** The largest batch of a bulk writer for a store with these limits. A record of more bytes is a batch by itself. */
export function bulkBatchOf({ batchRecords, batchBytes }: StoreLimits): {
  readonly records: number;
  readonly bytes: number;
} {
  // Half of the limit leaves room for what a store adds to a line.
  return { records: Math.min(bulkBatch.records, batchRecords), bytes: Math.min(bulkBatch.bytes, batchBytes / 2) };
}
