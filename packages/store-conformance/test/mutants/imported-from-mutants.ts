import type { ListQuery, SessionPage, SessionStore } from "@throughline/core";
import { maintained } from "./maintenance-mutants.ts";
import { noted, type Mutant, type MutantWorld } from "./mutant.ts";

type BrokenHandle = NonNullable<Mutant["handle"]>;
type SourceQuery = ListQuery & Required<Pick<ListQuery, "importedFrom">>;

/** A store whose list by source is wrong; any other list is right. */
function bySource(
  answer: (query: SourceQuery, inner: SessionStore, world: MutantWorld) => Promise<SessionPage>,
): BrokenHandle {
  return (inner, world) => ({
    list: async (query = {}) => {
      const { importedFrom } = query;
      return importedFrom === undefined ? inner.list(query) : answer({ ...query, importedFrom }, inner, world);
    },
  });
}

const asking = (change: (query: SourceQuery) => ListQuery): BrokenHandle =>
  bySource((query, inner) => inner.list(change(query)));

function without(query: ListQuery, name: keyof ListQuery): ListQuery {
  const { [name]: _left, ...rest } = query;
  return rest as ListQuery;
}

async function marked(page: SessionPage, purgedAtMs: number | null): Promise<SessionPage> {
  return page.purgedAtMs === undefined ? page : { ...page, purgedAtMs };
}

export const importedFromMutants: readonly Mutant[] = [
  {
    name: "a list by source has current sessions only",
    foundBy: "imported-from/finds",
    handle: asking((query) => ({ state: "active", ...query })),
  },
  {
    name: "a list by source ignores the format",
    foundBy: "imported-from/finds",
    handle: bySource(async (query, inner) => {
      const page = await inner.list(query);
      const { sessions } = await inner.list({
        ...without(query, "cursor"),
        importedFrom: { sourceId: "", ...query.importedFrom, format: "codex" },
      });
      return { ...page, sessions: [...page.sessions, ...sessions] };
    }),
  },
  {
    name: "a list by source tells upper from lower case",
    foundBy: "imported-from/finds",
    handle: bySource(async (query, inner) => {
      const page = await inner.list(query);
      const isExact = ({ entry }: SessionPage["sessions"][number]): boolean =>
        JSON.stringify(entry["importedFrom"]).includes(query.importedFrom?.sourceId ?? "");
      return { ...page, sessions: page.sessions.filter(isExact) };
    }),
  },
  ...(["agentId", "namespace", "keyPrefix"] as const).map((name) => ({
    name: `a list by source ignores ${name}`,
    foundBy: "imported-from/filters",
    handle: asking((query) => without(query, name)),
  })),
  {
    name: "the source is what the entry stated first",
    foundBy: "imported-from/follows-the-entry",
    handle: bySource(async (query, inner, world) => {
      const first = noted(world, "sources", () => new Map<string, SessionPage["sessions"][number]>());
      const page = await inner.list(query);
      for (const state of page.sessions) first.set(state.sessionId, state);
      return { ...page, sessions: [...first.values()] };
    }),
  },
  {
    name: "the source of a redacted field stays",
    foundBy: "imported-from/redacted-field",
    handle: (inner, world) => ({
      redact: async (ref, ids, options) => {
        const state = await inner.load(ref);
        if (state !== null && options.entryFields?.includes("importedFrom") === true)
          noted(world, "redacted", () => [] as SessionPage["sessions"][number][]).push(state);
        return inner.redact(ref, ids, options);
      },
      list: async (query = {}) => {
        const page = await inner.list(query);
        const kept = noted(world, "redacted", () => [] as SessionPage["sessions"][number][]);
        return query.importedFrom === undefined ? page : { ...page, sessions: [...page.sessions, ...kept] };
      },
    }),
  },
  {
    name: "a purge leaves no mark",
    foundBy: "imported-from/purged",
    handle: bySource(async (query, inner) => marked(await inner.list(query), null)),
  },
  {
    name: "the mark of a purge is every agent's",
    foundBy: "imported-from/purged",
    handle: bySource(async (query, inner) => {
      const { purgedAtMs = null } = await inner.list({ importedFrom: query.importedFrom });
      return marked(await inner.list(query), purgedAtMs);
    }),
  },
  {
    name: "every list has the mark of a purge",
    foundBy: "imported-from/purged",
    handle: (inner) => ({ list: async (query) => ({ purgedAtMs: null, ...(await inner.list(query)) }) }),
  },
  {
    name: "the mark of a purge is gone with the next session of the source",
    foundBy: "imported-from/purged",
    handle: bySource(async (query, inner) => {
      const page = await inner.list(query);
      return page.sessions.length > 1 ? marked(page, null) : page;
    }),
  },
  {
    name: "a store that lists no marks of purges",
    foundBy: "imported-from/carried",
    handle: (inner) => maintained(inner, { purges: async function* () {}, addPurges: async () => {} }),
  },
  {
    name: "the mark of a purge ends with its handle",
    foundBy: "imported-from/reopened",
    handle: bySource(async (query, inner, world) => {
      const page = await inner.list(query);
      return world.handles > 1 ? marked(page, null) : page;
    }),
  },
];
