import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { AppendResult, SessionEntry, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { noted, without, type Mutant } from "./mutant.ts";

const knownFields = new Set(["sessionId", "updatedAt", "label", "model", "deep", "other", "count", "kept"]);

function knownOnly(fields: object): SessionEntry {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => knownFields.has(name))) as SessionEntry;
}

/** An operation that answers another error code by doing something else. */
async function answering<Value>(work: () => Promise<Value>, code: Parameters<typeof hasErrorCode>[1], instead: (error: ThroughlineError) => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (hasErrorCode(error, code as never)) return instead(error);
    throw error;
  }
}

const textOf = (ref: SessionRef): string => JSON.stringify([ref.namespace, ref.agentId, ref.key]);

export const idempotencyMutants: readonly Mutant[] = [
  {
    name: "duplicates on retry",
    foundBy: "idempotency/first-result-again",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "idempotencyKey")) }),
  },
  {
    name: "a replay gives the head of today",
    foundBy: "idempotency/first-result-again",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        return result.replayed ? { ...result, head: (await inner.load(ref))?.head ?? result.head } : result;
      },
    }),
  },
  {
    name: "compares expect before the key",
    foundBy: "idempotency/before-expect",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const state = await inner.load(ref);
        if (state !== null && options?.expect !== undefined && options.expect.head !== state.head.headId) {
          return inner.append(ref, drafts, without(options, "idempotencyKey"));
        }
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "accepts other content for a key",
    foundBy: "idempotency/other-content",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(() => inner.append(ref, drafts, options), "IDEMPOTENCY_MISMATCH", () => inner.append(ref, drafts, without(options, "idempotencyKey"))),
    }),
  },
  {
    name: "one key for all sessions",
    foundBy: "idempotency/per-session",
    handle: (inner, world) => {
      const results = noted(world, "results", () => new Map<string, AppendResult>());
      return {
        append: async (ref, drafts, options) => {
          const earlier = results.get(options?.idempotencyKey ?? "");
          if (earlier !== undefined) return { ...earlier, replayed: true };
          const result = await inner.append(ref, drafts, options);
          if (options?.idempotencyKey !== undefined) results.set(options.idempotencyKey, result);
          return result;
        },
      };
    },
  },
  {
    name: "a refused append uses up its key",
    foundBy: "idempotency/refused-is-forgotten",
    handle: (inner, world) => {
      const failures = noted(world, "failures", () => new Map<string, unknown>());
      return {
        append: async (ref, drafts, options) => {
          const key = options?.idempotencyKey ?? "";
          if (key !== "" && failures.has(key)) throw failures.get(key);
          try {
            return await inner.append(ref, drafts, options);
          } catch (error) {
            failures.set(key, error);
            throw error;
          }
        },
      };
    },
  },
  {
    name: "looks for the key before it waits to write",
    foundBy: "idempotency/at-once",
    handle: (inner, world) => {
      const results = noted(world, "results", () => new Map<string, AppendResult>());
      return {
        append: async (ref, drafts, options) => {
          const key = options?.idempotencyKey;
          if (key === undefined || key === "" || key.length > 256) return inner.append(ref, drafts, options);
          const id = JSON.stringify([textOf(ref), key, drafts]);
          const earlier = results.get(id);
          if (earlier !== undefined) return { ...earlier, replayed: true };
          await wait(1);
          const result = await inner.append(ref, drafts, without(options, "idempotencyKey"));
          results.set(id, result);
          return result;
        },
      };
    },
  },
  {
    name: "writes the entry again on a retry",
    foundBy: "idempotency/entry-once",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        if (result.replayed && options?.entry !== undefined) await inner.append(ref, [], { entry: options.entry });
        return result;
      },
    }),
  },
  {
    name: "takes any text as a key",
    foundBy: "idempotency/key-form",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(() => inner.append(ref, drafts, options), "INPUT_INVALID", () => inner.append(ref, drafts, without(options, "idempotencyKey"))),
    }),
  },
  {
    name: "forgets idempotency on reopen",
    foundBy: "idempotency/reopen",
    handle: (inner, world) => {
      const number = world.handles;
      const keys = noted(world, "keys", () => new Map<string, number>());
      return {
        append: (ref, drafts, options) => {
          const key = options?.idempotencyKey;
          if (key === undefined) return inner.append(ref, drafts, options);
          if (!keys.has(key)) keys.set(key, number);
          return inner.append(ref, drafts, keys.get(key) === number ? options : { ...options, idempotencyKey: `${key}-${number}` });
        },
      };
    },
  },
  {
    name: "remembers the last hundred keys",
    foundBy: "idempotency/remembered",
    handle: (inner, world) => {
      const keys = noted(world, "keys", () => new Map<string, number>());
      return {
        append: (ref, drafts, options) => {
          const key = options?.idempotencyKey;
          if (key === undefined) return inner.append(ref, drafts, options);
          const isForgotten = keys.has(key) && keys.size - (keys.get(key) ?? 0) > 100;
          if (!keys.has(key)) keys.set(key, keys.size);
          return inner.append(ref, drafts, isForgotten ? without(options, "idempotencyKey") : options);
        },
      };
    },
  },
  {
    name: "appends again what it has forgotten",
    foundBy: "idempotency/expired",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(() => inner.append(ref, drafts, options), "IDEMPOTENCY_EXPIRED", () => inner.append(ref, drafts, without(options, "idempotencyKey"))),
    }),
  },
];

export const turnMutants: readonly Mutant[] = [
  {
    name: "fence not checked",
    foundBy: "turns/fenced-off",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(() => inner.append(ref, drafts, options), "TURN_FENCED", async () => {
          const fence = (await inner.load(ref))?.head.fence ?? 0;
          const turn = options?.turn;
          if (turn?.action === "open") return inner.append(ref, drafts, { ...options, turn: { ...turn, fence: fence + 1 } });
          return inner.append(ref, drafts, turn === undefined || fence === 0 ? without(options, "turn") : { ...options, turn: { ...turn, fence } });
        }),
    }),
  },
  {
    name: "knows no turns",
    foundBy: "turns/open-and-close",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "turn")) }),
  },
  {
    name: "a second turn takes over at once",
    foundBy: "turns/busy",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(() => inner.append(ref, drafts, options), "SESSION_BUSY", async () => {
          const fence = (await inner.load(ref))?.head.fence ?? 0;
          await inner.append(ref, [], { turn: { action: "close", fence } });
          return inner.append(ref, drafts, options);
        }),
    }),
  },
  {
    name: "says only that a session is busy",
    foundBy: "turns/busy",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        answering(() => inner.append(ref, drafts, options), "SESSION_BUSY", async () => {
          throw new ThroughlineError("SESSION_BUSY", "The session is busy.", { outcome: "not-applied" });
        }),
    }),
  },
  {
    name: "an open turn keeps side records out",
    foundBy: "turns/outsiders",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const turn = (await inner.load(ref))?.head.turn;
        if (turn != null && options?.turn === undefined) throw new ThroughlineError("SESSION_BUSY", "A turn is open.", { outcome: "not-applied" });
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "a lease never runs out",
    foundBy: "turns/lease-run-out",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts, options?.turn?.action === "open" ? { ...options, turn: { ...options.turn, leaseUntilMs: 9_999_999_999_999 } } : options),
    }),
  },
  {
    name: "any fence opens a turn",
    foundBy: "turns/next-fence",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const turn = options?.turn;
        if (turn?.action !== "open") return inner.append(ref, drafts, options);
        return inner.append(ref, drafts, { ...options, turn: { ...turn, fence: ((await inner.load(ref))?.head.fence ?? 0) + 1 } });
      },
    }),
  },
  {
    name: "renewing does nothing",
    foundBy: "turns/renew",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts, options?.turn?.action === "renew" ? { ...options, turn: { action: "within", fence: options.turn.fence } } : options),
    }),
  },
  {
    name: "looks for an open turn before it waits to write",
    foundBy: "turns/one-opens",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (options?.turn?.action !== "open" || (await inner.load(ref))?.head.turn != null) return inner.append(ref, drafts, options);
        await wait(1);
        const head = (await inner.load(ref))?.head;
        if (head?.turn != null) await inner.append(ref, [], { turn: { action: "close", fence: head.fence } });
        return inner.append(ref, drafts, { ...options, turn: { ...options.turn, fence: (head?.fence ?? 0) + 1 } });
      },
    }),
  },
  {
    name: "opening the store closes open turns",
    foundBy: "turns/reopen",
    handle: (inner, world) => {
      const isLater = world.handles > 1;
      const closeTurn = async (ref: SessionRef): Promise<void> => {
        const head = (await inner.load(ref))?.head;
        if (isLater && head?.turn != null) await inner.append(ref, [], { turn: { action: "close", fence: head.fence } });
      };
      return {
        load: async (ref, options) => {
          await closeTurn(ref);
          return inner.load(ref, options);
        },
        append: async (ref, drafts, options) => {
          await closeTurn(ref);
          return inner.append(ref, drafts, options);
        },
      };
    },
  },
];

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
        answering(() => inner.append(ref, drafts, options), "SESSION_NOT_FOUND", async () => {
          await inner.save(ref, { sessionId: `made-${Math.random()}` }, { ifRevision: null });
          return inner.append(ref, drafts, options);
        }),
    }),
  },
  {
    name: "save ignores ifRevision",
    foundBy: "entries/if-revision",
    handle: (inner) => ({
      save: async (ref, entry, options) => inner.save(ref, entry, { ...options, ifRevision: (await inner.load(ref))?.revision ?? null }),
    }),
  },
  {
    name: "save creates whatever the revision",
    foundBy: "entries/create-once",
    handle: (inner) => ({
      save: async (ref, entry, options) => inner.save(ref, entry, (await inner.load(ref)) === null ? { ...options, ifRevision: null } : options),
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
      save: (ref, entry, options) => inner.save(ref, typeof entry === "object" && entry !== null && !Array.isArray(entry) ? knownOnly(entry) : entry, options),
    }),
  },
  {
    name: "save merges",
    foundBy: "entries/written-whole",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        const before = await inner.load(ref);
        return inner.save(ref, before?.sessionId === entry?.sessionId ? { ...before?.entry, ...entry } : entry, options);
      },
    }),
  },
  {
    name: "a patch cannot remove a field",
    foundBy: "entries/patch",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts, options?.entry === undefined ? options : { ...options, entry: JSON.parse(JSON.stringify(options.entry)) as Record<string, unknown> }),
    }),
  },
  {
    name: "writes the patch before the records",
    foundBy: "entries/patch-with-refused-append",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (options?.entry !== undefined && drafts.length > 0 && options.idempotencyKey === undefined) await inner.append(ref, [], { entry: options.entry });
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
        if (before !== null && before.sessionId !== state.sessionId) await inner.remove({ ...ref, archiveId: before.sessionId }, { purge: true });
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
        return inner.save(ref, before === null || typeof entry?.sessionId !== "string" ? entry : { ...entry, sessionId: before.sessionId }, options);
      },
    }),
  },
  {
    name: "revisions begin anew with a session id",
    foundBy: "entries/late-after-new-session-id",
    handle: (inner, world) => {
      const bases = noted(world, "bases", () => new Map<string, number>());
      const shown = (state: SessionState): SessionState => ({ ...state, revision: state.revision - (bases.get(textOf(state.ref)) ?? 0) });
      return {
        load: async (ref, options) => {
          const state = await inner.load(ref, options);
          return state === null ? null : shown(state);
        },
        save: async (ref, entry, options) => {
          const before = await inner.load(ref);
          const base = bases.get(textOf(ref)) ?? 0;
          const state = await inner.save(ref, entry, { ...options, ifRevision: options.ifRevision === null ? null : options.ifRevision + base });
          if (before !== null && before.sessionId !== state.sessionId) bases.set(textOf(ref), before.revision);
          return shown(state);
        },
      };
    },
  },
  {
    name: "updatedAt goes back",
    foundBy: "entries/updated-at",
    handle: (inner) => withStates(inner, (state) => (typeof state.entry.updatedAt === "number" ? { ...state, updatedAtMs: state.entry.updatedAt } : state)),
  },
  {
    name: "believes any time",
    foundBy: "entries/updated-at-ahead",
    handle: (inner, world) => {
      const claims = noted(world, "claims", () => new Map<string, number>());
      return {
        ...withStates(inner, (state) => ({ ...state, updatedAtMs: Math.max(state.updatedAtMs, claims.get(state.sessionId) ?? 0) })),
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
    handle: (inner) => withStates(inner, (state) => ({ ...state, updatedAtMs: Math.max(state.updatedAtMs, state.createdAtMs) })),
  },
  {
    name: "takes any session id",
    foundBy: "entries/bad-ids",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        answering(() => inner.save(ref, entry, options), "SESSION_ID_INVALID", () => inner.save(ref, { ...entry, sessionId: `fixed-${Math.random()}` }, options)),
    }),
  },
  {
    name: "a session id may be taken again",
    foundBy: "entries/session-id-taken",
    handle: (inner) => ({
      save: (ref, entry, options) =>
        answering(() => inner.save(ref, entry, options), "SESSION_EXISTS", () => inner.save(ref, { ...entry, sessionId: `${entry.sessionId}-2` }, options)),
    }),
  },
  {
    name: "session ids are one set for all agents",
    foundBy: "entries/session-id-taken",
    handle: (inner) => ({
      save: async (ref, entry, options) => {
        if (options.ifRevision === null) {
          const { sessions } = await inner.list({ namespace: ref.namespace, state: "any", limit: 1000 }).catch(() => ({ sessions: [] }));
          const taken = sessions.some(({ sessionId }) => sessionId === entry?.sessionId);
          if (taken) throw new ThroughlineError("SESSION_EXISTS", "The session id is taken.", { outcome: "not-applied" });
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
        answering(() => inner.save(ref, entry, options), "ID_CASE_COLLISION", () => inner.save({ ...ref, agentId: `${ref.agentId}2` }, entry, options)),
    }),
  },
  {
    name: "takes anything for an entry",
    foundBy: "entries/not-an-entry",
    handle: (inner) => ({
      save: (ref, entry, options) => answering(() => inner.save(ref, entry, options), "INPUT_INVALID", () => inner.save(ref, { sessionId: "made" }, options)),
    }),
  },
];
