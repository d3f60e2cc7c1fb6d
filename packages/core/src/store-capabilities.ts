/**
 * States how durable a write is. `none`: in the memory of the process. `process`: survives kill -9. `disk`: survives a
 * power cut.
 */
export type Durability = "none" | "process" | "disk";

/** Limits the sizes that a store accepts. */
export interface StoreLimits {
  /** Limits a record, in bytes of its line. */
  readonly recordBytes: number;
  /** Limits the records of one append. */
  readonly batchRecords: number;
  /** Limits the bytes of one append. */
  readonly batchBytes: number;
  /** Limits the records of one page. */
  readonly pageRecords: number;
  /**
   * Ends a page that reaches this many bytes, after at least one record. A list counts the bytes of its entries, and
   * its page ends after at least one session.
   */
  readonly pageBytes: number;
  /** Limits the bytes of a file. Stores older than this part of the contract lack the field, and keep no files. */
  readonly fileBytes?: number;
}

/** States what a store can do. The object is declared once, frozen, and the same for the life of the handle. */
export interface StoreCapabilities {
  readonly specification: 1;
  /** Names the store for messages. */
  readonly name: string;
  /** Lists the durabilities that an append may request, weakest first. */
  readonly durabilities: readonly Durability[];
  /** States the durability of an append that does not request one. */
  readonly defaultDurability: Durability;
  /** States whether data outlives the handle. */
  readonly persistent: boolean;
  /** States which writers may write at the same time. */
  readonly writers: "one-handle" | "one-host" | "many-hosts";
  /** States whether the store has full-text search. */
  readonly search: boolean;
  /** States whether sessions can be followed. */
  readonly watch: boolean;
  /** States whether forks share records. */
  readonly fork: boolean;
  /** States whether the store can verify, repair and back up itself. */
  readonly maintenance: boolean;
  /**
   * States whether the store keeps open replies. Stores older than this part of the contract lack the field, which
   * means false.
   */
  readonly partials?: boolean;
  /** States whether the store keeps files. Stores older than this part of the contract lack the field. */
  readonly files?: boolean;
  /** States whether the store keeps vectors for search by meaning. Stores older than this part of the contract lack the field. */
  readonly vectors?: boolean;
  /** Holds the limits that the store accepts. */
  readonly limits: StoreLimits;
  /** States how long keyed appends are remembered. */
  readonly idempotency: {
    /** States the least number of keyed appends of a session that the store remembers. */
    readonly rememberedAppends: number;
    /**
     * States the least time that keyed appends are remembered, in milliseconds. Whichever of the two limits keeps more
     * applies.
     */
    readonly rememberedMs: number;
  };
}

const mebibyte = 1024 * 1024;

/** Holds the limits of a store that sets no smaller limits. */
export const defaultStoreLimits: Readonly<Required<StoreLimits>> = Object.freeze({
  recordBytes: 16 * mebibyte,
  batchRecords: 1000,
  batchBytes: 32 * mebibyte,
  pageRecords: 500,
  pageBytes: 2 * mebibyte,
  fileBytes: 100_000_000,
} satisfies Required<StoreLimits>);

/**
 * One append of a bulk writer (import, copy, fork by copy) holds at most this much. A torn end then takes one batch at
 * most, and an interrupted run resumes at the border of a batch. Compared with batches of 1,000 records, an import of
 * 100,000 records takes 10 to 25 % longer. Batches of 10 records take three to four times as long.
 */
const bulkBatch = { records: 100, bytes: mebibyte / 4 } as const;

/**
 * Returns the largest batch of a bulk writer for a store with these limits. A larger record forms a batch by itself.
 */
export function bulkBatchOf({ batchRecords, batchBytes }: StoreLimits): {
  readonly records: number;
  readonly bytes: number;
} {
  // Half of the limit leaves room for the bytes that a store adds to a line.
  return { records: Math.min(bulkBatch.records, batchRecords), bytes: Math.min(bulkBatch.bytes, batchBytes / 2) };
}
