import type { ListQuery, SessionPage, SessionState, SessionStore } from "@throughline/core";
import { createWorkSlices, sessionRow, type SessionRow } from "@throughline/core/internal";

/** Sessions are read in steps of this size, because entries of many megabytes must not all be in memory. */
const listStep = 100;
/** Limits the sessions that one page looks at, so that the answer arrives in time even when few of them are wanted. */
export const mostScanned = 2000;
const answerBytes = 2 * 1024 * 1024;

interface PageRequest {
  readonly query: ListQuery;
  /** Is null when every session is wanted. */
  readonly isWanted: ((row: SessionRow) => boolean) | null;
  readonly limit: number;
  readonly cursor: string | null;
  /** Makes the text of an item. */
  readonly text: (state: SessionState) => Promise<string>;
}

interface FoundPage extends Pick<SessionPage, "nextCursor" | "purgedAtMs"> {
  readonly items: readonly string[];
  /** Counts the sessions that were looked at, and those among them that the filter left out. */
  readonly scanned: number;
  readonly leftOut: number;
}

/** Reads sessions until a page is full of wanted ones, or enough were looked at. */
export async function sessionPage(store: SessionStore, request: PageRequest): Promise<FoundPage> {
  const { isWanted, limit, text } = request;
  const items: string[] = [];
  const slices = createWorkSlices();
  let { cursor } = request;
  let [bytes, scanned] = [0, 0];
  let purged: Pick<SessionPage, "purgedAtMs"> = {};
  do {
    const page = await wantedOf(store, { ...request, cursor }, limit - items.length);
    for (const state of page.wanted) {
      const item = await text(state);
      items.push(item);
      bytes += item.length;
      await slices.next();
    }
    scanned += page.scanned;
    cursor = page.nextCursor;
    purged = page.purgedAtMs === undefined ? {} : { purgedAtMs: page.purgedAtMs };
    const isFull = items.length >= limit || bytes >= answerBytes;
    if (isFull || (isWanted !== null && scanned >= mostScanned)) break;
  } while (cursor !== null);
  return { items, nextCursor: cursor, ...purged, scanned, leftOut: scanned - items.length };
}

/**
 * Reads one page of the store with at most `most` wanted sessions. The store's cursor stands behind the last session of
 * a page, so a page with more wanted ones is read again up to the last that fits.
 */
async function wantedOf(
  store: SessionStore,
  { query, isWanted, cursor }: Pick<PageRequest, "query" | "isWanted" | "cursor">,
  most: number,
): Promise<Omit<SessionPage, "sessions"> & { readonly wanted: readonly SessionState[]; readonly scanned: number }> {
  for (let limit = isWanted === null ? Math.min(most, listStep) : listStep; ;) {
    const page = await store.list({ ...query, limit, ...(cursor === null ? {} : { cursor }) });
    const { sessions } = page;
    const wanted = isWanted === null ? sessions : sessions.filter((state) => isWanted(sessionRow(state)));
    const last = wanted[most - 1];
    if (wanted.length <= most || last === undefined) return { ...page, wanted, scanned: sessions.length };
    limit = sessions.indexOf(last) + 1;
  }
}
