import { hasErrorCode, ThroughlineError } from "../throughline-error.ts";
import { parseSessionKey, sessionKeyAliases } from "../session-key.ts";
import { sessionRef } from "../session-ref.ts";
import { labelSessionKey } from "../build-session-key.ts";
import { nearestName } from "../nearest-name.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { quote } from "../session-id.ts";
import { sessionLabel } from "./session-row.ts";

/** Limits the sessions that a text may name. */
export interface SessionScope {
  /** States the namespace of the sessions; `""` is the default namespace. */
  readonly namespace: string;
  /** States the agent whose sessions a text may name. */
  readonly agentId: string;
  /**
   * States whether the caller chose the agent. False means the default agent, which a key that names its agent
   * overrides.
   */
  readonly isAgentGiven: boolean;
}

export interface SessionCandidate {
  readonly key: string;
  readonly sessionId: string;
  readonly label: string | null;
  readonly title: string | null;
  readonly isArchived: boolean;
}

export function sessionCandidate(state: SessionState): SessionCandidate {
  const { ref, sessionId, entry, archived } = state;
  const title = typeof entry.title === "string" && entry.title !== "" ? entry.title : null;
  return { key: ref.key, sessionId, label: sessionLabel(entry), title, isArchived: archived };
}

type SessionMatch<Candidate> =
  | { readonly kind: "one"; readonly candidate: Candidate }
  | { readonly kind: "none" }
  | { readonly kind: "several"; readonly candidates: readonly Candidate[] };

/**
 * Finds the session that a text names: an exact key, else an exact id. Else it is the only session whose key, id, label
 * or title starts with the text. Else it is the only session whose label or title holds all words of the text. Case
 * does not matter. An archived session answers to its id only, because its key belongs to the current session.
 */
export function matchSession<Candidate extends SessionCandidate>(
  text: string,
  candidates: readonly Candidate[],
  options: { readonly isExact: boolean } = { isExact: false },
): SessionMatch<Candidate> {
  const aliases = aliasesOf(text);
  const exact =
    candidates.find(({ key, isArchived }) => !isArchived && aliases.includes(key)) ??
    candidates.find(({ sessionId }) => sessionId === text);
  if (exact !== undefined) return { kind: "one", candidate: exact };
  if (options.isExact || text === "") return { kind: "none" };
  const prefix = text.toLowerCase();
  const begins = (value: string | null): boolean => value?.toLowerCase().startsWith(prefix) === true;
  const begun = candidates.filter(
    ({ key, sessionId, label, title, isArchived }) =>
      begins(sessionId) || (!isArchived && (begins(key) || begins(label) || begins(title))),
  );
  return matchOf(begun.length > 0 ? begun : candidates.filter((candidate) => holdsWords(candidate, prefix)));
}

function matchOf<Candidate>(found: readonly Candidate[]): SessionMatch<Candidate> {
  const [only] = found;
  if (only === undefined) return { kind: "none" };
  return found.length === 1 ? { kind: "one", candidate: only } : { kind: "several", candidates: found };
}

/** The caller passes the text in lower case. */
function holdsWords({ label, title, isArchived }: SessionCandidate, text: string): boolean {
  const words = text.split(" ").filter((word) => word !== "");
  if (isArchived || words.length === 0) return false;
  return [label, title].some((name) => {
    const lower = name?.toLowerCase();
    return lower !== undefined && words.every((word) => lower.includes(word));
  });
}

/** Sets how strictly `resolveSession` matches, and what aborts it. */
export interface ResolveSessionOptions {
  /**
   * Requires an exact name. Commands that change or remove sessions set it, so that a prefix never selects the wrong
   * session.
   * @default false
   */
  readonly isExact?: boolean;
  /** Aborts the search through the sessions with ABORTED. */
  readonly signal?: AbortSignal;
}

const resolveTable: OptionTable<ResolveSessionOptions> = { isExact: optionKinds.flag, signal: optionKinds.signal };

/**
 * Finds the session that a KEY argument names: an exact key, the session of a label, or an exact id. Else it is the
 * only session whose key, id, label or title starts with the text. Else it is the only session whose label or title
 * holds all words of the text.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_AMBIGUOUS, KEY_AGENT_MISMATCH, STORE_NOT_FOUND
 */
export async function resolveSession(
  store: SessionStore,
  text: string,
  scope: SessionScope,
  options: ResolveSessionOptions = {},
): Promise<SessionState> {
  assertKnownOptions<ResolveSessionOptions>("resolveSession", options, resolveTable);
  const waiting = options.signal === undefined ? {} : { signal: options.signal };
  for (const ref of refsOf(text, scope)) {
    const state = await store.load(ref, waiting);
    if (state !== null) return state;
  }
  const agentId = agentOf(text, scope);
  const candidates: (SessionCandidate & { readonly state: SessionState })[] = [];
  const query = {
    namespace: scope.namespace,
    agentId,
    state: "any" as const,
    sort: "key" as const,
    limit: 1000,
    ...waiting,
  };
  for await (const state of listSessions(store, query)) {
    candidates.push({ ...sessionCandidate(state), state });
  }
  const match = matchSession(text, candidates, { isExact: options.isExact === true });
  if (match.kind === "one") return match.candidate.state;
  if (match.kind === "none")
    throw notFound(text, agentId, { isExact: options.isExact === true, nearest: nearestKey(text, candidates) });
  throw ambiguous(text, match.candidates);
}

/** Yields every session of a query and reads the next page only when it is needed. */
export async function* listSessions(
  store: SessionStore,
  query: Parameters<SessionStore["list"]>[0],
): AsyncGenerator<SessionState, void, void> {
  let cursor: string | null = null;
  do {
    const page = await store.list({ ...query, ...(cursor === null ? {} : { cursor }) });
    yield* page.sessions;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

/**
 * Returns the addresses that a text may name, in the order of the lookup. The text as a key comes first, in each of its
 * spellings, then the key for the text as a label. The list is empty for a text that is neither.
 */
export function refsOf(text: string, scope: SessionScope): readonly SessionRef[] {
  return [...found(() => keyRefs(text, scope)), ...found(() => [labelRef(text, scope)])];
}

export interface SessionLocation {
  readonly ref: SessionRef;
  /** Null means that the session does not exist yet. */
  readonly state: SessionState | null;
  /** A program that creates the session sets this label; null means that the text is a key. */
  readonly label: string | null;
}

/**
 * Finds the session that a program opens by a text, or the address where the program would create it. A text with a
 * colon is a key, any other text is a label. The session of a label has the key
 * `agent:<agent>:cli:direct:<label-slug>`, unless a session exists whose key is the text itself.
 * @throws {ThroughlineError} KEY_INVALID, AGENT_ID_INVALID, KEY_AGENT_MISMATCH, and what the store throws
 */
export async function locateSession(
  store: SessionStore,
  text: string,
  scope: SessionScope,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<SessionLocation> {
  const keys = keyRefs(text, scope);
  const isLabel = !text.includes(":");
  const label = isLabel ? text : null;
  for (const ref of isLabel ? [...keys, ...found(() => [labelRef(text, scope)])] : keys) {
    const state = await store.load(ref, signal === undefined ? {} : { signal });
    if (state !== null) return { ref, state, label };
  }
  return { ref: newSessionRef(text, scope), state: null, label };
}

/**
 * Returns the address of a session that a program creates by a text. A text with a colon is the key; any other text is
 * a label from which the key is derived.
 * @throws {ThroughlineError} KEY_INVALID, AGENT_ID_INVALID, KEY_AGENT_MISMATCH
 */
export function newSessionRef(text: string, scope: SessionScope): SessionRef {
  return text.includes(":") ? keyRef(text, scope) : labelRef(text, scope);
}

function keyRefs(text: string, scope: SessionScope): readonly SessionRef[] {
  return sessionKeyAliases(text).map((key) => keyRef(key, scope));
}

/** A key that names its agent overrides the default agent, but not an agent that the caller chose. */
function keyRef(key: string, { namespace, agentId, isAgentGiven }: SessionScope): SessionRef {
  const isOfScope = isAgentGiven || parseSessionKey(key).agentId === null;
  return sessionRef({ key, namespace, ...(isOfScope ? { agentId } : {}) });
}

function labelRef(label: string, { namespace, agentId }: SessionScope): SessionRef {
  return sessionRef({ key: labelSessionKey(agentId, label), namespace, agentId });
}

function found(look: () => readonly SessionRef[]): readonly SessionRef[] {
  try {
    return look();
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID", "AGENT_ID_INVALID")) return [];
    throw error;
  }
}

function aliasesOf(text: string): readonly string[] {
  try {
    return sessionKeyAliases(text);
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID", "AGENT_ID_INVALID")) return [text];
    throw error;
  }
}

/** A lookup searches the sessions of one agent. A key that names its agent overrides the default agent. */
function agentOf(text: string, scope: SessionScope): string {
  if (scope.isAgentGiven) return scope.agentId;
  try {
    return parseSessionKey(text).agentId ?? scope.agentId;
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID", "AGENT_ID_INVALID")) return scope.agentId;
    throw error;
  }
}

/** The search for a misspelled name stops here, because a person waits for the answer. */
const mostCompared = 5000;

function nearestKey(text: string, candidates: readonly SessionCandidate[]): string | null {
  const keyByName = new Map<string, string>();
  for (const { key, label, title, isArchived } of candidates.slice(0, mostCompared)) {
    if (isArchived) continue;
    for (const name of [key, key.slice(key.lastIndexOf(":") + 1), label ?? "", title ?? ""])
      if (name !== "" && !keyByName.has(name)) keyByName.set(name, key);
  }
  const name = nearestName(text, [...keyByName.keys()], { maxEdits: text.length > 8 ? 3 : 2, minLength: 3 });
  return name === null ? null : (keyByName.get(name) ?? null);
}

function notFound(
  text: string,
  agentId: string,
  { isExact, nearest }: { readonly isExact: boolean; readonly nearest: string | null },
): ThroughlineError {
  const name = quote(text);
  const what = isExact
    ? `No session of agent ${agentId} has exactly the key or id ${name}.`
    : `No session of agent ${agentId} matches ${name}.`;
  return new ThroughlineError(
    "SESSION_NOT_FOUND",
    nearest === null ? what : `${what} Did you mean ${quote(nearest)}?`,
    {
      details: { text, agentId, ...(nearest === null ? {} : { nearest }) },
    },
  );
}

function ambiguous(text: string, candidates: readonly SessionCandidate[]): ThroughlineError {
  const named = candidates.slice(0, 10).map(({ key, sessionId, label, title }) => ({ key, sessionId, label, title }));
  const list = named.map(({ key, sessionId, label, title }) => {
    const name = label ?? title;
    return `  ${key}  ${sessionId}${name === null ? "" : `  ${name}`}`;
  });
  const more = candidates.length > named.length ? `\n  and ${candidates.length - named.length} more` : "";
  return new ThroughlineError(
    "SESSION_AMBIGUOUS",
    `${quote(text)} fits ${candidates.length} sessions:\n${list.join("\n")}${more}`,
    { details: { text, count: candidates.length, candidates: named } },
  );
}
