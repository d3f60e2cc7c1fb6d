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
 * Which sessions an agent's session may see and address: itself, what descends from it, every active one of the agent, or
 * its archived ones too. None reaches another agent.
 */
export type SessionVisibility = "self" | "tree" | "agent" | "all";

/** What one session may see. A store that knows no other agent, and the rule of what lies within reach. */
export interface VisibleSessions {
  readonly store: SessionStore;
  readonly own: SessionRef;
  /**
   * The session with that key. A hidden session gets the same error as a missing one, so that the answer reveals
   * nothing.
   * @throws {SessionToolRefusal}
   */
  find(key: string): Promise<SessionState>;
  /** Newest first, and whether that is all there is to see. */
  list(most: number): Promise<{ readonly sessions: readonly SessionState[]; readonly isWhole: boolean }>;
}

/** The most sessions that are searched for visible ones. */
const mostLookedAt = 5000;

/** What the session that a call belongs to may see. */
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
  // By the key of the parent, so that a long list asks once for each of them.
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
    // No key, or one of another agent: there is no such session here.
    if (ThroughlineError.isInstance(error) && /^(KEY|AGENT_ID)_/.test(error.code)) return null;
    throw error;
  }
}

/** Of a key that no session holds now. */
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
