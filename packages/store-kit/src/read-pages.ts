import { assertStoreOptions, refused } from "@throughline/core/internal";
import type { ReadOptions, RecordPage } from "@throughline/core";
import type { ReadPayload, StoreLimits } from "@throughline/core/internal";

/** Describes the rest of a read: the records between two seqs, from one end on. */
export interface PageRange {
  /** Limits the rest to records with a greater seq. */
  readonly afterSeq: number;
  /** Limits the rest to records with a smaller seq. */
  readonly beforeSeq: number;
  /** States the end from which the records are read. */
  readonly order: "ascending" | "descending";
  /** Limits the number of records. */
  readonly left: number;
}

/**
 * Returns the bounds of a read as whole numbers or Infinity, with the same records between them. An unknown order or
 * payload is refused too, so that every store refuses it.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function readBounds(options: Omit<ReadOptions<ReadPayload>, "signal">): {
  readonly afterSeq: number;
  readonly beforeSeq: number;
  readonly limit: number;
} {
  assertStoreOptions("read", options);
  const { afterSeq = 0, beforeSeq = Infinity, limit = Infinity } = options;
  return { afterSeq: Math.max(Math.floor(afterSeq), 0), beforeSeq: Math.ceil(beforeSeq), limit: Math.floor(limit) };
}

/**
 * Checks the options of a watch, and returns the seq and the signal.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function watchBounds(options: { readonly afterSeq: number; readonly signal: AbortSignal }): {
  readonly afterSeq: number;
  readonly signal: AbortSignal;
} {
  assertStoreOptions("watch", options);
  const { afterSeq, signal } = options;
  return { ...readBounds({ afterSeq }), signal };
}

/**
 * Reads page by page, each page only when it is requested. `readPage` returns the first page of a range, which is empty
 * when the range holds no record. The first call happens even with a limit of 0, so that a missing session is reported.
 * @throws {ThroughlineError} INPUT_INVALID, STORE_CORRUPT, and what `readPage` throws
 */
export async function* readPages<Payload extends ReadPayload>(
  options: ReadOptions<Payload>,
  readPage: (range: PageRange) => RecordPage<Payload> | Promise<RecordPage<Payload>>,
): AsyncGenerator<RecordPage<Payload>> {
  const { order = "ascending" } = options;
  const { afterSeq, beforeSeq, limit } = readBounds(options);
  let range: PageRange = { afterSeq, beforeSeq, order, left: limit };
  do {
    const page = checkedPage(await readPage(range), range);
    const last = page.records.at(-1);
    if (last === undefined) return;
    yield page;
    const behind = order === "ascending" ? { afterSeq: last.seq } : { beforeSeq: last.seq };
    range = { ...range, ...behind, left: range.left - page.records.length };
    // Between its ends no record is left, so a range that is read to its end needs no empty page.
  } while (range.left > 0 && range.afterSeq + 1 < range.beforeSeq);
}

type Span = Pick<PageRange, "afterSeq" | "beforeSeq" | "order">;

interface AnyPage {
  readonly records: readonly { readonly seq: number }[];
  readonly lastSeq: number;
}

/**
 * Returns the page after checking that it continues the range. The page starts where the range does, has every
 * following seq, and is empty only when the range holds no record. A damaged index would otherwise lead a reader in
 * circles, skip records, or end the read early.
 * @throws {ThroughlineError} STORE_CORRUPT
 */
export function checkedPage<Page extends AnyPage>(page: Page, range: Span & { readonly left?: number }): Page {
  const { order, afterSeq, beforeSeq, left = Infinity } = range;
  const { records, lastSeq } = page;
  const step = order === "ascending" ? 1 : -1;
  const newest = Math.min(lastSeq, beforeSeq - 1);
  let expected = order === "ascending" ? afterSeq + 1 : newest;
  const isInRange = (): boolean => expected > afterSeq && expected <= newest;
  for (const { seq } of records) {
    if (seq !== expected || !isInRange()) throw wrongPage(expected, seq, page);
    expected += step;
  }
  if (records.length === 0 && left > 0 && isInRange()) throw wrongPage(expected, null, page);
  return page;
}

function wrongPage(expected: number, found: number | null, { lastSeq }: AnyPage): Error {
  const instead = found === null ? "nothing is read there" : `record ${found} is read instead`;
  const message = `The store is damaged: record ${expected} of ${lastSeq} is expected, and ${instead}.`;
  return refused("STORE_CORRUPT", message, { expectedSeq: expected, foundSeq: found, lastSeq });
}

/** Returns the rows of one page: none beyond the range's `left`, and none after the row that fills the bytes. */
export function pageRows<Row extends { readonly bytes: number }>(
  rows: Iterable<Row>,
  { left }: Pick<PageRange, "left">,
  { pageRecords, pageBytes }: Pick<StoreLimits, "pageRecords" | "pageBytes">,
): Row[] {
  const page: Row[] = [];
  let bytes = 0;
  if (left <= 0) return page;
  for (const row of rows) {
    page.push(row);
    bytes += row.bytes;
    if (page.length >= Math.min(left, pageRecords) || bytes >= pageBytes) break;
  }
  return page;
}
