import { basename } from "node:path";
import { hasErrorCode, sessionRef, ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import {
  freeRef,
  isTerminalKey,
  listSessions,
  refsOf,
  resolveSession,
  sessionProgram,
  terminalSessionKey,
} from "@throughline/core/internal";
import { type AgentContext, conversationFolder } from "./agent-context.ts";
import { isInherited } from "./inherited-session.ts";

/** Aborts the searches for a session with `signal`. */
export interface StartContext extends AgentContext {
  readonly signal: AbortSignal;
}

export interface StartingSession {
  readonly ref: SessionRef;
  /** Holds the imported session that the first message forks to `ref`; null otherwise. */
  readonly origin: SessionState | null;
  /**
   * True if the user did not name the key. If another process takes the key, the next free key is used. @default false
   */
  readonly isAnyKey?: boolean;
}

/** Limits the sessions that are searched for one of this folder. */
const mostLookedAt = 2000;

/**
 * Opens the session of the given or configured key, which may be new. Otherwise the newest own session of this folder,
 * else a new one. An imported session is resumed only if the user names it, and then in a fork, because its program may
 * still write to it.
 * @throws {ThroughlineError} SESSION_ARCHIVED, KEY_INVALID, SESSION_AMBIGUOUS, and errors of the store
 */
export async function startingSession(
  context: StartContext,
  store: SessionStore,
  key: string | null,
): Promise<StartingSession> {
  if (key === null) {
    const newest = await newestRef(context, store);
    return newest === null
      ? { ref: await newRef(context, store), origin: null, isAnyKey: true }
      : { ref: newest, origin: null };
  }
  const named = await namedSession(context, store, key);
  return "state" in named ? continued(context, store, named.state, key) : { ref: named.ref, origin: null };
}

/**
 * Forks an imported session into this folder; any other session is continued directly.
 * @param name the name of the session that an error shows. Default: its key
 * @throws {ThroughlineError} SESSION_ARCHIVED
 */
export async function continued(
  context: StartContext,
  store: SessionStore,
  state: SessionState,
  name: string = state.ref.key,
): Promise<StartingSession> {
  if (state.archived)
    throw new ThroughlineError("SESSION_ARCHIVED", `${name} is archived.`, {
      details: { ...state.ref },
      remedy: `Restore it first: \`throughline restore --archive ${state.sessionId}\`.`,
    });
  if (isOwn(context, state)) return { ref: state.ref, origin: null };
  return { ref: await newRef(context, store), origin: state };
}

function isOwn(context: StartContext, { entry }: SessionState): boolean {
  return sessionProgram(entry) === null || isInherited(context, entry);
}

async function namedSession(
  { scope, signal }: StartContext,
  store: SessionStore,
  key: string,
): Promise<{ readonly state: SessionState } | { readonly ref: SessionRef }> {
  try {
    return { state: await resolveSession(store, key, scope, { isExact: true, signal }) };
  } catch (error) {
    const [ref] = refsOf(key, scope);
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    if (ref === undefined)
      throw new ThroughlineError("KEY_INVALID", `The session key ${JSON.stringify(key)} cannot be used.`);
    return { ref };
  }
}

/**
 * Finds the newest own session of this folder. Sessions of channels, groups and jobs are resumed by key only, because
 * other people would read there what the user writes.
 */
async function newestRef(context: StartContext, store: SessionStore): Promise<SessionRef | null> {
  const { scope, signal } = context;
  const { namespace, agentId } = scope;
  const folder = conversationFolder(context);
  let count = 0;
  for await (const state of listSessions(store, { namespace, agentId, limit: 100, signal })) {
    if ((count += 1) > mostLookedAt) break;
    const isHere = state.entry.cwd === folder || isInherited(context, state.entry);
    if (isHere && isTerminalKey(state.ref.key) && isOwn(context, state)) return state.ref;
  }
  return null;
}

/** Tries `agent:<agent>:cli:direct:<folder>`, then the same with `-2`, and so on. */
async function newRef(context: StartContext, store: SessionStore): Promise<SessionRef> {
  const { namespace, agentId } = context.scope;
  // The root folder has no name.
  const key = terminalSessionKey(agentId, basename(conversationFolder(context)) || "chat");
  return freeRef(store, sessionRef({ key, namespace, agentId }), context.signal);
}
