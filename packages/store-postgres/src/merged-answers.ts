import type { SearchHit, SearchQuery, SessionPage, SessionRef, SessionState } from "@throughline/core";
import { type ListPlan, listPosition } from "@throughline/store-kit/internal";

/**
 * Merges the pages of two stores. A cursor states a sort position and no store, so both stores accept the same one. A
 * session that both return was moved in between, and the page shows the target's copy.
 */
export async function mergePages(
  plan: ListPlan,
  target: SessionPage,
  source: () => Promise<SessionPage>,
): Promise<SessionPage> {
  const { sort, limit, cursorAt } = plan;
  const other = await source();
  const names = new Set(target.sessions.map(nameOf));
  const all = [...target.sessions, ...other.sessions.filter((session) => !names.has(nameOf(session)))]
    .map((session) => ({ session, position: listPosition(session, sort) }))
    .toSorted((one, two) => compare(one.position, two.position));
  const page = all.slice(0, limit);
  const last = page.at(-1);
  const isLast = all.length === page.length && target.nextCursor === null && other.nextCursor === null;
  return {
    sessions: page.map(({ session }) => session),
    nextCursor: last === undefined || isLast ? null : cursorAt(last.position),
    ...(target.purgedAtMs === undefined ? {} : { purgedAtMs: latest(target.purgedAtMs, other.purgedAtMs ?? null) }),
  };
}

function latest(one: number | null, two: number | null): number | null {
  return one === null || two === null ? (one ?? two) : Math.max(one, two);
}

function nameOf({ ref, sessionId }: SessionState): string {
  return JSON.stringify([ref.namespace, ref.agentId, sessionId]);
}

/** Compares by bytes, because the database sorts that way. */
function compare(one: readonly (string | number)[], two: readonly (string | number)[]): number {
  for (const [index, part] of one.entries()) {
    const other = two[index];
    if (typeof part === "number") {
      if (part !== Number(other)) return part - Number(other);
    } else {
      const order = Buffer.compare(Buffer.from(part), Buffer.from(String(other)));
      if (order !== 0) return order;
    }
  }
  return 0;
}

/** Merges the best hits of both stores, without hits in copies that a move left at the source. */
export async function* mergedHits(
  { limit = 20 }: SearchQuery,
  target: AsyncIterable<SearchHit>,
  source: AsyncIterable<SearchHit>,
  isMoved: (ref: SessionRef) => Promise<boolean>,
): AsyncGenerator<SearchHit> {
  const hits = await Array.fromAsync(target);
  const names = new Set(hits.map(({ sessionId, id }) => JSON.stringify([sessionId, id])));
  const known = new Map<string, boolean>();
  for await (const hit of source) {
    if (names.has(JSON.stringify([hit.sessionId, hit.id]))) continue;
    const copy = JSON.stringify(hit.ref);
    if (!known.has(copy)) known.set(copy, await isMoved(hit.ref));
    if (known.get(copy) === false) hits.push(hit);
  }
  yield* hits.toSorted((one, two) => two.score - one.score).slice(0, limit);
}
