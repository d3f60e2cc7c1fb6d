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
import type { CommandContext } from "../command.ts";
import { isInherited } from "../inherit/inherited-session.ts";
import { conversationFolder } from "./conversation-folder.ts";

/** The session that a conversation opens. */
export interface StartingSession {
  readonly ref: SessionRef;
  /** The imported session that the first message forks to `ref`; null for any other. */
  readonly origin: SessionState | null;
  /** The key was free, and nobody named it: where another process takes it, the next free one will do. @default false */
  readonly isAnyKey?: boolean;
}

/** The newest sessions among which that of a folder is looked for. */
const mostLookedAt = 2000;

/**
 * The session of the key, given or configured, which may be new; else the newest own session of this folder; else a new one.
 * An imported session is resumed only if the person names it, and then in a fork: its program may still write to it.
 * @throws {ThroughlineError} SESSION_ARCHIVED, KEY_INVALID, SESSION_AMBIGUOUS, and what the store throws
 */
export async function startingSession(
  context: CommandContext,
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
  return "state" in named ? continued(context, store, named.state) : { ref: named.ref, origin: null };
}

/** Continues a session in a conversation: in the session itself, or for an import in a fork of this folder. */
export async function continued(
  context: CommandContext,
  store: SessionStore,
  state: SessionState,
): Promise<StartingSession> {
  if (isOwn(context, state)) return { ref: state.ref, origin: null };
  return { ref: await newRef(context, store), origin: state };
}

function isOwn(context: CommandContext, { entry }: SessionState): boolean {
  return sessionProgram(entry) === null || isInherited(context, entry);
}

async function namedSession(
  { scope, signal }: CommandContext,
  store: SessionStore,
  key: string,
): Promise<{ readonly state: SessionState } | { readonly ref: SessionRef }> {
  try {
    const state = await resolveSession(store, key, scope, { isExact: true, signal });
    if (!state.archived) return { state };
    throw new ThroughlineError("SESSION_ARCHIVED", `${key} is archived.`, {
      details: { ...state.ref },
      remedy: `Restore it first: \`throughline restore --archive ${state.sessionId}\`.`,
    });
  } catch (error) {
    const [ref] = refsOf(key, scope);
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    if (ref === undefined)
      throw new ThroughlineError("KEY_INVALID", `The session key ${JSON.stringify(key)} cannot be used.`);
    return { ref };
  }
}

/**
 * The newest own session that works in this folder. Sessions of channels, groups and jobs are resumed by their key only:
 * other people would read there what the user writes here.
 */
async function newestRef(context: CommandContext, store: SessionStore): Promise<SessionRef | null> {
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

/** The first free key of this folder: `agent:<agent>:cli:direct:<folder>`, then `-2`. */
export async function newRef(context: CommandContext, store: SessionStore): Promise<SessionRef> {
  const { namespace, agentId } = context.scope;
  // The root folder has no name.
  const key = terminalSessionKey(agentId, basename(conversationFolder(context)) || "chat");
  return freeRef(store, sessionRef({ key, namespace, agentId }), context.signal);
}
