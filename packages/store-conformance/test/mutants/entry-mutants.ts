import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { SessionEntry, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { noted, type Mutant } from "./mutant.ts";

const knownFields = new Set(["sessionId", "updatedAt", "label", "model", "deep", "other", "count", "kept"]);

function knownOnly(fields: object): SessionEntry {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => knownFields.has(name))) as SessionEntry;
}

/** An operation that answers another error code by doing something else. */
async function answering<Value>(
  work: () => Promise<Value>,
  code: Parameters<typeof hasErrorCode>[1],
  instead: (error: ThroughlineError) => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (hasErrorCode(error, code as never)) return instead(error);
    throw error;
  }
}

const textOf = (ref: SessionRef): string => JSON.stringify([ref.namespace, ref.agentId, ref.key]);

/** A state changed on its way out of load, save and list. */
function withStates(inner: SessionStore, change: (state: SessionState) => SessionState): Partial<SessionStore> {
  return {
    load: async (ref, options) => {
      const state = await inner.load(ref, options);
      return state === null ? null : change(state);
    },
    save: async (ref, entry, options) => change(await inner.save(ref, entry, options)),
    list: async (query) => {
      const page = await inner.list(query);
      return { ...page, sessions: page.sessions.map(change) };
    },
  };
}

export const entryMutants: readonly Mutant[] = [
  {
    name: "a session begins when it is brought",
    foundBy: "entries/created-at",
    handle: (inner) => ({
      save: (ref, entry, { createdAtMs: _createdAtMs, ...options }) => inner.save(ref, entry, options),
    }),
  },
  {
    name: "a beginning to come is believed",
    foundBy: "entries/created-at",
    handle: (inner) => {
      const claimed = new Map<string, number>();
      return {
        ...withStates(inner, (state) => ({
          ...state,
          createdAtMs: claimed.get(state.sessionId) ?? state.createdAtMs,
        })),
        save: async (ref, entry, options) => {
          const state = await inner.save(ref, entry, options);
          if ((options.createdAtMs ?? 0) > state.createdAtMs) claimed.set(state.sessionId, options.createdAtMs ?? 0);
          return { ...state, createdAtMs: claimed.get(state.sessionId) ?? state.createdAtMs };
        },
      };
    },
  },
  {
    name: "load creates",
    foundBy: "lifecycle/load-creates-nothing",
    handle: (inner) => ({
      load: async (ref, options) => {
        const state = await inner.load(ref, options);
        if (state !== null || ref.archiveId !== undefined) return state;
        return inner.save(ref, { sessionId: `made-${Math.random()}` }, { ifRevision: null });
      },
    }),
  },
  {
    name: "append creates",
    foundBy: "lifecycle/missing-session",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(
          () => inner.append(ref, drafts, options),
          "SESSION_NOT_FOUND",
          async () => {
            await inner.save(ref, { sessionId: `made-${Math.random()}` }, { ifRevision: null });
            return inner.append(ref, drafts, options);
          },
        ),
    }),
  },
  {
    name: "save ignores ifRevision",
    foundBy: "entries/if-revision",
    handle: (inner) => ({
      save: async (ref, entry, options) =>
        inner.save(ref, entry, { ...options, ifRevision: (await inner.load(ref))?.revision ?? null }),
    }),
  },
  {
    name: "save creates whatever the revision",
    foundBy: "entries/create-once",
    handle: (inner) => ({
      save: async (ref, entry, options) =>
        inner.save(ref, entry, (await inner.load(ref)) === null ? { ...options, ifRevision: null } : options),
    }),
  },
  {
    name: "compares the revision before it waits to write",
    foundBy: "entries/concurrent-updates",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        const before = await inner.load(ref);
        if (before === null || before.revision !== options.ifRevision) return inner.save(ref, entry, options);
        await wait(1);
        return inner.save(ref, entry, { ...options, ifRevision: (await inner.load(ref))?.revision ?? null });
      },
    }),
  },
  {
    name: "revisions begin at nought",
    foundBy: "entries/create",
    handle: (inner) => withStates(inner, (state) => ({ ...state, revision: state.revision - 1 })),
  },
  {
    name: "loses unknown entry fields",
    foundBy: "entries/unknown-fields",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        inner.save(
          ref,
          typeof entry === "object" && entry !== null && !Array.isArray(entry) ? knownOnly(entry) : entry,
          options,
        ),
    }),
  },
  {
    name: "save merges",
    foundBy: "entries/written-whole",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        const before = await inner.load(ref);
        return inner.save(
          ref,
          before?.sessionId === entry?.sessionId ? { ...before?.entry, ...entry } : entry,
          options,
        );
      },
    }),
  },
  {
    name: "a patch cannot remove a field",
    foundBy: "entries/patch",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts,
          options?.entry === undefined
            ? options
            : { ...options, entry: JSON.parse(JSON.stringify(options.entry)) as Record<string, unknown> },
        ),
    }),
  },
  {
    name: "writes the patch before the records",
    foundBy: "entries/patch-with-refused-append",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (options?.entry !== undefined && drafts.length > 0 && options.idempotencyKey === undefined)
          await inner.append(ref, [], { entry: options.entry });
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "leaves a session id out of a patch in silence",
    foundBy: "entries/refused-patch",
    handle: (inner) => ({
      append: (ref, drafts, options) => {
        const { sessionId: _sessionId, ...entry } = options?.entry ?? {};
        return inner.append(ref, drafts, options?.entry === undefined ? options : { ...options, entry });
      },
    }),
  },
  {
    name: "every append is a new revision",
    foundBy: "entries/append-keeps-revision",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, { entry: {}, ...options }),
    }),
  },
  {
    name: "a new session id loses the old session",
    foundBy: "entries/new-session-id",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        const before = await inner.load(ref);
        const state = await inner.save(ref, entry, options);
        if (before !== null && before.sessionId !== state.sessionId)
          await inner.remove({ ...ref, archiveId: before.sessionId }, { purge: true });
        return state;
      },
    }),
  },
  {
    name: "a new session id keeps the records",
    foundBy: "entries/new-session-id",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        const before = await inner.load(ref);
        return inner.save(
          ref,
          before === null || typeof entry?.sessionId !== "string" ? entry : { ...entry, sessionId: before.sessionId },
          options,
        );
      },
    }),
  },
  {
    name: "revisions begin anew with a session id",
    foundBy: "entries/late-after-new-session-id",
    handle: (inner, world) => {
      const bases = noted(world, "bases", () => new Map<string, number>());
      const shown = (state: SessionState): SessionState => ({
        ...state,
        revision: state.revision - (bases.get(textOf(state.ref)) ?? 0),
      });
      return {
        load: async (ref, options) => {
          const state = await inner.load(ref, options);
          return state === null ? null : shown(state);
        },
        save: async (ref, entry, options) => {
          const before = await inner.load(ref);
          const base = bases.get(textOf(ref)) ?? 0;
          const state = await inner.save(ref, entry, {
            ...options,
            ifRevision: options.ifRevision === null ? null : options.ifRevision + base,
          });
          if (before !== null && before.sessionId !== state.sessionId) bases.set(textOf(ref), before.revision);
          return shown(state);
        },
      };
    },
  },
  {
    name: "updatedAt goes back",
    foundBy: "entries/updated-at",
    handle: (inner) =>
      withStates(inner, (state) =>
        typeof state.entry.updatedAt === "number" ? { ...state, updatedAtMs: state.entry.updatedAt } : state,
      ),
  },
  {
    name: "believes any time",
    foundBy: "entries/updated-at-ahead",
    handle: (inner, world) => {
      const claims = noted(world, "claims", () => new Map<string, number>());
      return {
        ...withStates(inner, (state) => ({
          ...state,
          updatedAtMs: Math.max(state.updatedAtMs, claims.get(state.sessionId) ?? 0),
        })),
        save: async (ref, entry, options) => {
          const state = await inner.save(ref, entry, options);
          if (typeof entry.updatedAt === "number") claims.set(state.sessionId, entry.updatedAt);
          return { ...state, updatedAtMs: Math.max(state.updatedAtMs, claims.get(state.sessionId) ?? 0) };
        },
      };
    },
  },
  {
    name: "a new session is always of now",
    foundBy: "entries/updated-at-own",
    handle: (inner) =>
      withStates(inner, (state) => ({ ...state, updatedAtMs: Math.max(state.updatedAtMs, state.createdAtMs) })),
  },
  {
    name: "takes any session id",
    foundBy: "entries/bad-ids",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        answering(
          () => inner.save(ref, entry, options),
          "SESSION_ID_INVALID",
          () => inner.save(ref, { ...entry, sessionId: `fixed-${Math.random()}` }, options),
        ),
    }),
  },
  {
    name: "a session id may be taken again",
    foundBy: "entries/session-id-taken",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        answering(
          () => inner.save(ref, entry, options),
          "SESSION_EXISTS",
          () => inner.save(ref, { ...entry, sessionId: `${entry.sessionId}-2` }, options),
        ),
    }),
  },
  {
    name: "session ids are one set for all agents",
    foundBy: "entries/session-id-taken",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        if (options.ifRevision === null) {
          const { sessions } = await inner
            .list({ namespace: ref.namespace, state: "any", limit: 1000 })
            .catch(() => ({ sessions: [] }));
          const taken = sessions.some(({ sessionId }) => sessionId === entry?.sessionId);
          if (taken)
            throw new ThroughlineError("SESSION_EXISTS", "The session id is taken.", { outcome: "not-applied" });
        }
        return inner.save(ref, entry, options);
      },
    }),
  },
  {
    name: "tells ids apart by case",
    foundBy: "entries/ids-differing-by-case",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        answering(
          () => inner.save(ref, entry, options),
          "ID_CASE_COLLISION",
          () => inner.save({ ...ref, agentId: `${ref.agentId}2` }, entry, options),
        ),
    }),
  },
  {
    name: "takes anything for an entry",
    foundBy: "entries/not-an-entry",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        answering(
          () => inner.save(ref, entry, options),
          "INPUT_INVALID",
          () => inner.save(ref, { sessionId: "made" }, options),
        ),
    }),
  },
];
