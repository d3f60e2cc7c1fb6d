import {
  createAgentScope,
  type ListQuery,
  sessionRef,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { spawnLineage } from "./spawn-lineage.ts";
import { quote, SessionToolRefusal } from "./tool-refusal.ts";

/**
 * Limits the sessions that an agent's session may see and address. `self` is the session alone, and `tree` adds its
 * descendants. `agent` is every active session of the agent, and `all` adds its archived sessions. No value reaches
 * another agent.
 */
export type SessionVisibility = "self" | "tree" | "agent" | "all";

/** The store in this object is limited to one agent, so no method can reach another agent's sessions. */
export interface VisibleSessions {
  readonly store: SessionStore;
  readonly own: SessionRef;
  /**
   * Finds the visible session with a key. A hidden session gets the same error as a missing one, so that the answer
   * reveals nothing.
   * @throws {SessionToolRefusal}
   */
  find(key: string): Promise<SessionState>;
  /** Lists the newest sessions first. `isWhole` is false when the limit cut the list off. */
  list(most: number): Promise<{ readonly sessions: readonly SessionState[]; readonly isWhole: boolean }>;
}

/** Limits the search when most sessions are hidden, because each hidden session may cost reads of its ancestors. */
const mostLookedAt = 5000;

export function visibleSessions(
  store: SessionStore,
  own: SessionRef,
  visibility: SessionVisibility,
  signal: AbortSignal,
): VisibleSessions {
  const { namespace, agentId } = own;
  const scope = createAgentScope(store, { namespace, agentId });
  const isVisible = createRule(scope, own, visibility, signal);
  const state = visibility === "all" ? "any" : "active";
  return {
    store: scope,
    own,
    async find(key) {
      const found =
        (await loadOrNull(scope, { namespace, agentId, key }, signal)) ??
        (visibility === "all" ? await newestArchived(scope, key, signal) : null);
      if (found === null || !(await isVisible(found))) throw unknown(key);
      return found;
    },
    async list(most) {
      if (visibility === "self") {
        const found = await scope.load(own, { signal });
        return { sessions: found === null ? [] : [found], isWhole: true };
      }
      const sessions: SessionState[] = [];
      let lookedAt = 0;
      for await (const one of everySession(scope, { state, signal })) {
        if (sessions.length === most || ++lookedAt > mostLookedAt) return { sessions, isWhole: false };
        if (await isVisible(one)) sessions.push(one);
      }
      return { sessions, isWhole: true };
    },
  };
}

type Rule = (state: SessionState) => boolean | Promise<boolean>;

function createRule(store: SessionStore, own: SessionRef, visibility: SessionVisibility, signal: AbortSignal): Rule {
  if (visibility === "agent" || visibility === "all") return () => true;
  const isOwn = ({ ref }: SessionState): boolean => ref.key === own.key && ref.archiveId === undefined;
  if (visibility === "self") return isOwn;
  // Siblings share a parent. The answer is cached by the parent's key, so that a long list reads each lineage once.
  const answers = new Map<unknown, Promise<boolean>>();
  const descends = async (state: SessionState): Promise<boolean> => {
    const { ancestors, isCircular } = await spawnLineage(store, state, signal);
    return !isCircular && ancestors.some(({ ref }) => ref.key === own.key);
  };
  return (state) => {
    if (isOwn(state)) return true;
    const parent = state.entry["spawnedBy"];
    if (typeof parent !== "string" || state.ref.key === own.key) return false;
    const known = answers.get(parent) ?? descends(state);
    answers.set(parent, known);
    return known;
  };
}

async function loadOrNull(
  store: SessionStore,
  address: { readonly namespace: string; readonly agentId: string; readonly key: string },
  signal: AbortSignal,
): Promise<SessionState | null> {
  try {
    return await store.load(sessionRef(address), { signal });
  } catch (error) {
    // The text is not a valid key, or the key belongs to another agent. Both count as a session that does not exist
    // here.
    if (ThroughlineError.isInstance(error) && /^(KEY|AGENT_ID)_/.test(error.code)) return null;
    throw error;
  }
}

/** An archived session is found only when no active session holds the key. */
async function newestArchived(store: SessionStore, key: string, signal: AbortSignal): Promise<SessionState | null> {
  for await (const session of everySession(store, { state: "archived", keyPrefix: key, signal }))
    if (session.ref.key === key) return session;
  return null;
}

async function* everySession(
  store: SessionStore,
  query: Pick<ListQuery, "state" | "keyPrefix"> & { readonly signal: AbortSignal },
): AsyncGenerator<SessionState> {
  let cursor: string | null = null;
  do {
    const page = await store.list({ ...query, limit: 200, ...(cursor === null ? {} : { cursor }) });
    yield* page.sessions;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

function unknown(key: string): SessionToolRefusal {
  return new SessionToolRefusal("unknown-session", `There is no session ${quote(key)} that you may see.`);
}
