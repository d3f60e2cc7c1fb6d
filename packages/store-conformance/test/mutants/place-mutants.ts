import type { SessionRef, SessionState } from "@throughline/core";
import { addressed, noted, type Mutant } from "./mutant.ts";

/** A list whose later pages show a session that another value of the filter asks for. */
function forgettingLater(name: "namespace" | "agentId"): NonNullable<Mutant["handle"]> {
  return (inner) => ({
    list: async (query = {}) => {
      const page = await inner.list(query);
      const { cursor, [name]: asked, ...rest } = query;
      if (cursor === undefined || asked === undefined) return page;
      const { sessions } = await inner.list({ ...rest, limit: 50 });
      const others = sessions.filter(({ ref }) => ref[name] !== asked);
      return { ...page, sessions: [...page.sessions.slice(1), ...others.slice(0, 1)] };
    },
  });
}

export const listMutants: readonly Mutant[] = [
  ...(["namespace", "agentId"] as const).map((name) => ({
    name: `later pages of a list ignore ${name}`,
    foundBy: "list/later-pages",
    handle: forgettingLater(name),
  })),
  {
    name: "list skips at a page edge",
    foundBy: "list/every-session-once",
    handle: (inner) => ({
      list: async (query) => {
        const page = await inner.list(query);
        return query?.cursor === undefined ? page : { ...page, sessions: page.sessions.slice(1) };
      },
    }),
  },
  {
    name: "a session that is damaged fails the list",
    foundBy: "list/damaged-session",
    handle: (inner) => {
      const shown = new Map<string, SessionRef>();
      return {
        list: async (query) => {
          const page = await inner.list(query);
          for (const { ref } of page.sessions) shown.set(ref.key, ref);
          for (const ref of shown.values()) await inner.load(ref);
          return page;
        },
      };
    },
  },
  {
    name: "a page before the last has room",
    foundBy: "list/damaged-session",
    handle: (inner) => ({
      list: async (query) => {
        const page = await inner.list(query);
        return page.nextCursor === null || page.sessions.length < 3 || page.sessions.length > 10
          ? page
          : inner.list({ ...query, limit: page.sessions.length - 1 });
      },
    }),
  },
  {
    name: "nobody hears of a damaged session",
    foundBy: "list/damaged-session",
    under: (under) => ({ events: () => (under.events?.() ?? []).filter(({ name }) => name !== "finding") }),
  },
  {
    name: "a damaged session is told of again and again",
    foundBy: "list/damaged-session",
    under: (under) => ({
      events: () =>
        (under.events?.() ?? []).flatMap((event) =>
          Array.from({ length: event.name === "finding" ? 2 : 1 }, () => event),
        ),
    }),
  },
  {
    name: "list sorts oldest first",
    foundBy: "list/newest-first",
    handle: (inner) => ({
      list: async (query) => {
        const page = await inner.list(query);
        return query?.sort === "key" ? page : { ...page, sessions: page.sessions.toReversed() };
      },
    }),
  },
  {
    name: "list ignores the sort",
    foundBy: "list/by-key",
    handle: (inner) => ({ list: (query) => inner.list({ ...query, sort: "updated" }) }),
  },
  {
    name: "list folds the case of a prefix",
    foundBy: "list/filters",
    handle: (inner) => ({
      list: (query) =>
        inner.list(query?.keyPrefix === undefined ? query : { ...query, keyPrefix: query.keyPrefix.toLowerCase() }),
    }),
  },
  {
    name: "list takes untilMs in",
    foundBy: "list/filters",
    handle: (inner) => ({
      list: (query) => inner.list(query?.untilMs === undefined ? query : { ...query, untilMs: query.untilMs + 4000 }),
    }),
  },
  {
    name: "list shows archived sessions unasked",
    foundBy: "list/archived",
    handle: (inner) => ({ list: (query) => inner.list({ state: "any", ...query }) }),
  },
  {
    name: "list has no default limit",
    foundBy: "list/default-limit",
    handle: (inner) => ({ list: (query) => inner.list({ limit: 1000, ...query }) }),
  },
  {
    name: "list fills a page, whatever the entries weigh",
    foundBy: "list/page-bytes",
    handle: (inner) => ({
      list: async (query = {}) => {
        const { limit = 50, ...filters } = query;
        const sessions: SessionState[] = [];
        let page = await inner.list(query);
        for (; page.nextCursor !== null && sessions.length + page.sessions.length < limit;) {
          sessions.push(...page.sessions);
          page = await inner.list({ ...filters, limit: limit - sessions.length, cursor: page.nextCursor });
        }
        return { ...page, sessions: [...sessions, ...page.sessions] };
      },
    }),
  },
  {
    name: "takes any cursor for the first page",
    foundBy: "list/bad-cursor",
    handle: (inner) => ({
      list: async (query) => {
        try {
          return await inner.list(query);
        } catch (error) {
          if (query?.cursor === undefined) throw error;
          const { cursor: _cursor, ...rest } = query;
          return inner.list(rest);
        }
      },
    }),
  },
  {
    name: "takes the cursor of another query",
    foundBy: "list/other-cursor",
    handle: (inner, world) => {
      const made = noted(world, "made", () => new Set<string>());
      return {
        list: async (query) => {
          const { cursor, ...rest } = query ?? {};
          try {
            const page = await inner.list(query);
            if (page.nextCursor !== null) made.add(page.nextCursor);
            return page;
          } catch (error) {
            if (cursor === undefined || !made.has(cursor)) throw error;
            return inner.list(rest);
          }
        },
      };
    },
  },
  {
    name: "list counts from the start",
    foundBy: "list/while-others-change",
    handle: (inner, world) => {
      const offsets = noted(world, "offsets", () => new Map<string, number>());
      return {
        list: async (query) => {
          const page = await inner.list(query);
          const start = query?.cursor === undefined ? 0 : (offsets.get(query.cursor) ?? 0);
          if (page.nextCursor !== null) offsets.set(page.nextCursor, start + page.sessions.length);
          if (query?.cursor === undefined) return page;
          const { cursor: _cursor, ...rest } = query;
          const all = await inner.list({ ...rest, limit: 1000 });
          return { ...page, sessions: all.sessions.slice(start, start + page.sessions.length) };
        },
      };
    },
  },
  {
    name: "list shows entries as they were created",
    foundBy: "list/says-what-load-says",
    handle: (inner, world) => {
      const entries = noted(world, "entries", () => new Map<string, string>());
      return {
        save: async (ref, entry, options) => {
          const state = await inner.save(ref, entry, options);
          if (!entries.has(state.sessionId)) entries.set(state.sessionId, JSON.stringify(state.entry));
          return state;
        },
        list: async (query) => {
          const page = await inner.list(query);
          return {
            ...page,
            sessions: page.sessions.map((state) => ({
              ...state,
              entry: JSON.parse(entries.get(state.sessionId) ?? "null") as typeof state.entry,
            })),
          };
        },
      };
    },
  },
];

export const isolationMutants: readonly Mutant[] = [
  {
    name: "ignores agentId",
    foundBy: "isolation/agents",
    handle: (inner) => addressed(inner, (ref) => ({ ...ref, agentId: "main" })),
  },
  {
    name: "ignores namespace",
    foundBy: "isolation/namespaces",
    handle: (inner) => addressed(inner, (ref) => ({ ...ref, namespace: "" })),
  },
  {
    name: "leaks another namespace in the second page",
    foundBy: "isolation/second-page",
    handle: (inner) => ({
      list: async (query = {}) => {
        const page = await inner.list(query);
        if (query.cursor === undefined) return page;
        const { cursor: _cursor, ...first } = query;
        const other = await inner.list({ ...first, namespace: query.namespace === "" ? "tenant" : "" });
        return { ...page, sessions: [...page.sessions, ...other.sessions] };
      },
    }),
  },
  {
    name: "folds the case of keys",
    foundBy: "isolation/keys-differing-by-case",
    handle: (inner) => addressed(inner, (ref) => ({ ...ref, key: ref.key.toLowerCase() })),
  },
  {
    name: "normalizes keys",
    foundBy: "isolation/hostile-keys",
    handle: (inner) => addressed(inner, (ref) => ({ ...ref, key: ref.key.normalize("NFC") })),
  },
  {
    name: "mends half characters in keys",
    foundBy: "isolation/keys-no-store-keeps",
    handle: (inner) => addressed(inner, (ref) => ({ ...ref, key: ref.key.toWellFormed() })),
  },
  {
    name: "keeps sessions in a plain object",
    foundBy: "isolation/hostile-keys",
    handle: (inner) => {
      const check = (ref: SessionRef): SessionRef => {
        if (ref.key in {}) throw new TypeError(`Cannot set property ${ref.key}`);
        return ref;
      };
      return { save: async (ref, entry, options) => inner.save(check(ref), entry, options) };
    },
  },
  {
    name: "one log for all sessions",
    foundBy: "isolation/sessions",
    handle: (inner, world) => {
      const first = noted<{ ref: SessionRef | null }>(world, "first", () => ({ ref: null }));
      return {
        append: async (ref, drafts, options) => {
          await inner.load(ref);
          first.ref ??= ref;
          return inner.append(first.ref, drafts, options);
        },
        read: (ref, options) => inner.read(first.ref ?? ref, options),
      };
    },
  },
];
