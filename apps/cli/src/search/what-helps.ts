import type { SearchHit } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import type { HitQuery } from "@throughline/core/internal/node";
import { counted } from "../counted.ts";
import type { Output } from "../output.ts";
import { filterFlags } from "../session-filter.ts";
import { recordFlags, type SearchOptions } from "./asked-search.ts";

interface EmptySearch {
  readonly query: HitQuery;
  readonly options: SearchOptions;
}

interface Variation {
  /** Names the change, such as `with --archived`. */
  readonly what: string;
  readonly query: HitQuery;
}

const mostCounted = 100;
/** A store takes words that must all occur up to this length, so a longer text is not tried as beginnings. */
const mostText = 1000;

/**
 * Prints the changes of a search that would find something. With an index it runs them; otherwise it only lists them,
 * because each would read every record.
 */
export async function tellWhatHelps(
  output: Pick<Output, "note">,
  empty: EmptySearch,
  search: ((query: HitQuery) => AsyncIterable<SearchHit>) | null,
): Promise<void> {
  const variations = variationsOf(empty);
  if (variations.length === 0) return;
  const names = variations.map(({ what }) => what);
  if (search === null) return output.note(`Try again ${listed(names, "or")}.`);
  let isFound = false;
  for (const { what, query } of variations) {
    const count = await countOf(search({ ...query, limit: mostCounted + 1 }));
    if (count === 0) continue;
    isFound = true;
    output.note(`  ${what}: ${count > mostCounted ? `more than ${mostCounted} hits` : counted(count, "hit")}`);
  }
  if (!isFound) output.note(`Also none ${listed(names, "or")}.`);
}

function variationsOf({ query, options }: EmptySearch): readonly Variation[] {
  const { text, session } = query;
  const beginnings = text.replaceAll(/"[^"]*"?|[^\s"]+/g, (piece) => (/^"|\*$/.test(piece) ? piece : `${piece}*`));
  const anywhere = { session: null };
  const [isArchived, isAllAgents] = [options.archived === true, options.allAgents === true];
  const { role: _r, tool: _t, sinceMs: _s, untilMs: _u, file: _f, isError: _e, isWanted: _w, ...unfiltered } = query;
  // Without words and without filters there is nothing to search for.
  const filters = text === "" ? [] : [...recordFlags(options), ...filterFlags(options)];
  return [
    ...(beginnings === text || beginnings.length > mostText
      ? []
      : [{ what: `with ${shellWord(beginnings)}`, query: { ...query, text: beginnings } }]),
    ...(filters.length === 0 ? [] : [{ what: `without ${listed(filters, "and")}`, query: unfiltered }]),
    ...(session === null ? [] : [{ what: "without --session", query: { ...query, ...anywhere } }]),
    ...(isArchived || session !== null
      ? []
      : [{ what: "with --archived", query: { ...query, state: "any" as const } }]),
    ...(isAllAgents || session !== null ? [] : [{ what: "with --all-agents", query: { ...query, agentId: null } }]),
  ];
}

async function countOf(hits: AsyncIterable<SearchHit>): Promise<number> {
  let count = 0;
  for await (const _hit of hits) count += 1;
  return count;
}

function listed(names: readonly string[], word: "and" | "or"): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`;
}
