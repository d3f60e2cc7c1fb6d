import type { SearchHit, SearchQuery } from "@throughline/core";
import {
  findMatches,
  type SearchPlan,
  type SearchScope,
  searchSnippet,
  searchText,
  tokenPlan,
} from "@throughline/core/internal";
import { agentOf } from "./layout.ts";
import { refOf, wholeRecordOf, type DatabaseRow } from "./row-values.ts";
import { candidatesOfAny, findStems, scoreOf, type StemSearch } from "./search-any-of.ts";
import {
  canPass,
  candidatesOfAll,
  pageStatement,
  searchParts,
  type Candidates,
  type SearchParts,
} from "./search-candidates.ts";
import type { StoreContext } from "./store-context.ts";

/** A page has more candidates where tokens do not show a prefix, because most of them are no hits. */
const lookedThroughAtOnce = 500;

interface HitOptions {
  /** Holds the query as `readSearchQuery` gives it. */
  readonly scope: SearchScope;
  /** States whether row security limits the role. */
  readonly isLimited: boolean;
  check(): Promise<void>;
}

/**
 * Yields the best hits first. The index finds candidates. Each is then checked in the text itself, so that a hit always
 * matches what it shows.
 */
export async function* searchHits(
  context: StoreContext,
  query: SearchQuery,
  { scope, isLimited, check }: HitOptions,
): AsyncGenerator<SearchHit> {
  const { plan } = scope;
  if (plan.clauses.length === 0 || !canPass(query, scope)) return;
  const parts = (): SearchParts => searchParts(context, query, scope);
  await check();
  const { plan: indexed, isWhole } = indexedPlan(context, scope);
  const candidates = await candidatesOf(context, indexed, { query, isLimited, parts });
  if (candidates === null) return;
  let left = scope.limit;
  const size = isWhole ? Math.max(50, scope.limit * 2) : lookedThroughAtOnce;
  // The position of the last candidate, so that additions and purges between two pages shift no other candidate. A rank
  // must be exact, so a server that rounds numbers is refused when the store is opened.
  for (let after: readonly unknown[] | null = null; ;) {
    await check();
    const statement = pageStatement(context, parts(), candidates, { size, after });
    const asked = { signal: query.signal, isRead: true, agent: agentOf(query) };
    const rows = await context.pool.run(statement.sql, statement.values, asked);
    for (const row of rows) {
      // No session that passes shows the record, or the record was deleted meanwhile.
      if (row["session_id"] === null || row["id"] === null) continue;
      const hit = hitOf(context, scope, row);
      if (hit === null) continue;
      yield hit;
      if (--left === 0) return;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    const position = Object.keys(candidates.order).map((column) => last[column]);
    after = [...position, ...(context.found.layout.name === "plain" ? [] : [last["tenant"]])];
  }
}

/** Returns what the index is asked: all of a plan, or under a codec its tokens without the prefixes. */
function indexedPlan(
  { tokenOf }: StoreContext,
  { plan, namespace }: SearchScope,
): { readonly plan: SearchPlan; readonly isWhole: boolean } {
  const token = tokenOf(namespace, "search");
  return token === null ? { plan, isWhole: true } : tokenPlan(plan, token);
}

/** Returns how candidates are found. Returns null when no document holds one of some stems. */
async function candidatesOf(context: StoreContext, plan: SearchPlan, search: StemSearch): Promise<Candidates | null> {
  if (plan.needs === "all") return candidatesOfAll(context, plan);
  const stems = await findStems(context, plan.clauses, search);
  return stems.length === 0 ? null : candidatesOfAny(context, stems, search);
}

function hitOf(context: StoreContext, { plan }: SearchScope, row: DatabaseRow): SearchHit | null {
  const ref = refOf(row);
  const stored = wholeRecordOf(context.rows, ref, row);
  if (stored === null) return null;
  const text = searchText(stored.record);
  const matches = text === null ? null : findMatches(plan, text.text);
  if (text === null || matches === null) return null;
  const { seq, id, tsMs } = stored;
  const score = plan.needs === "all" ? Number(row["rank"]) : scoreOf(row["rank"]);
  const place = { ref, sessionId: String(row["session_id"]), seq, id, tsMs };
  return { ...place, role: text.role, score, ...searchSnippet(plan, text.text, matches) };
}
