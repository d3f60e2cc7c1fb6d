import { setImmediate as pause } from "node:timers/promises";
import { createAgentScope, ThroughlineError } from "@throughline/core";
import type {
  ListQuery,
  ReadOptions,
  RecordPage,
  SearchHit,
  SessionRef,
  SessionState,
  SessionStore,
} from "@throughline/core";
import { agentOfKey, type NearestHit, refused, sessionKeyAliases } from "@throughline/core/internal";
import { folderScope, mostIndexedHits, searchHits } from "@throughline/core/internal/node";
import { bestOf, isExactSearch, rankHits, wordsToLookUp } from "@throughline/tools/internal/search";
import { meantHits, passesFilters, type Meaning } from "./meant-hits.ts";
import type { MemoryScope } from "./memory-scope.ts";
import { readOnlyStore } from "./read-only-store.ts";

interface ViewSearch {
  readonly text: string;
  readonly role?: string;
  readonly tool?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Limits the search to one session; null searches all visible ones. */
  readonly session: SessionState | null;
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Is called when visible places may have been left out. */
  readonly onCut: () => void;
  /** Receives what was not compared by meaning. */
  readonly onNote: (note: string) => void;
  /** Returns whether the time of the call is over. The places that were found until then are worth more than a failure. */
  readonly isLate: () => boolean;
}

interface ViewHits {
  readonly isRanked: boolean;
  readonly hits: AsyncIterable<SearchHit>;
}

/** A part is one query that the store can list: the sessions of an agent with a common key prefix. */
interface ViewPart {
  /** Null selects every agent of the namespace. */
  readonly agentId: string | null;
  readonly keyPrefix: string;
}

/**
 * Shows the sessions inside a scope, read-only. Sessions outside answer as missing, so that a client cannot detect
 * them.
 */
export interface MemoryView {
  /** @throws {ThroughlineError} SESSION_NOT_FOUND */
  find(key: string, agentId: string | undefined, signal: AbortSignal): Promise<SessionState>;
  /**
   * Returns the hits in visible sessions, ranked as answers. Hits of a search for exact words are not ranked: without an
   * index they come in the order of the scan.
   */
  search(query: ViewSearch): ViewHits;
  /** Returns the queries that list all visible keys with this prefix. */
  parts(prefix: string): readonly ViewPart[];
  list(part: ViewPart, query: Pick<ListQuery, "limit" | "cursor" | "signal">): ReturnType<SessionStore["list"]>;
  read(session: SessionState, options: ReadOptions): AsyncIterable<RecordPage>;
}

/** Sessions are listed in steps of this size where a folder limits them, because entries may be large. */
const listStep = 100;
/** A late call shows what it found, so its last look-ups get a moment of their own. */
export const lateMs = 1000;

export function createMemoryView(opened: SessionStore, scope: MemoryScope, meaning: Meaning | null = null): MemoryView {
  const { namespace, agents, agentId: ownAgent, folder } = scope;
  const keyPrefixes = shortest(scope.keyPrefixes);
  const isInFolder = folder === undefined ? null : folderScope(folder);
  const sees = (ref: SessionRef): boolean => isInScope(ref, scope);
  const seesSession = ({ ref, entry }: SessionState): boolean =>
    sees(ref) && (isInFolder === null || isInFolder(entry.cwd));
  const isNarrow = isInFolder !== null || keyPrefixes.length > 0;
  const storeOf = scopedStores(readOnlyStore(opened), scope);
  const searched: readonly (string | null)[] = agents === "*" ? [null] : agents;
  return {
    async find(key, agentId, signal) {
      for (const ref of refsOf(key, agentId, scope)) {
        if (!sees(ref)) continue;
        const state = await storeOf(ref.agentId).load(ref, { signal });
        if (state !== null && !state.archived && seesSession(state)) return state;
      }
      throw notFound();
    },
    search(query) {
      const narrow = isNarrow ? { seesSession } : {};
      return viewHits({ searched, ownAgent, storeOf, sees, ...narrow, namespace, meaning }, query);
    },
    parts(prefix) {
      const prefixes = keyPrefixes.length === 0 ? [prefix] : narrowed(keyPrefixes, prefix);
      return searched.flatMap((agentId) => prefixes.map((keyPrefix) => ({ agentId, keyPrefix })));
    },
    list({ agentId, keyPrefix }, query) {
      const agent = agentId === null ? {} : { agentId };
      const prefix = keyPrefix === "" ? {} : { keyPrefix };
      const listed = { ...query, namespace, ...agent, ...prefix };
      return isInFolder === null ? storeOf(agentId).list(listed) : seenPage(storeOf(agentId), listed, seesSession);
    },
    read(session, options) {
      if (!seesSession(session)) throw notFound();
      return storeOf(session.ref.agentId).read(session.ref, options);
    },
  };
}

/** Names the sessions that a search covers. */
interface SearchedPlaces {
  readonly namespace: string;
  /** Holds the agents that are searched one after another; null stands for all of them. */
  readonly searched: readonly (string | null)[];
  readonly ownAgent: string;
  /** Searches by meaning too; null compares words. */
  readonly meaning: Meaning | null;
  readonly storeOf: (agentId: string | null) => SessionStore;
  readonly sees: (ref: SessionRef) => boolean;
  /** Is absent where every session of the agents is visible. */
  readonly seesSession?: (state: SessionState) => boolean;
}

function viewHits(places: SearchedPlaces, query: ViewSearch): ViewHits {
  const { text, signal, isLate } = query;
  const storeOf = ({ agentId }: SessionRef): SessionStore => places.storeOf(agentId);
  if (isExactSearch(text)) return { isRanked: false, hits: whileInTime(wordHits(places, query), query) };
  const asked = { ...query, anyOf: wordsToLookUp(text), limit: mostIndexedHits };
  const near = meantIn(places, query);
  // A failure of the search for words is thrown first.
  near?.catch(() => {});
  const hits = rankHits({
    question: text,
    near,
    mayShow: (part) => passesFilters(part, query),
    candidates: bestOf(whileInTime(wordHits(places, asked), query)),
    storeOf,
    signal: () => (isLate() ? AbortSignal.timeout(lateMs) : signal),
  });
  return { isRanked: true, hits };
}

/** Finds what is near in meaning. Vectors are kept for each agent, so a search of all agents has those of the own one. */
function meantIn(
  { namespace, searched, ownAgent, storeOf, sees, seesSession, meaning }: SearchedPlaces,
  query: ViewSearch,
): Promise<readonly NearestHit[]> | undefined {
  if (meaning === null) return undefined;
  const { session, signal, onNote } = query;
  if (session === null && searched.includes(null)) onNote("sessions of other agents were compared by words only");
  const loaded = new Map<string, SessionState | null>();
  return meantHits(meaning, {
    ...query,
    namespace,
    agents: session === null ? searched.map((agentId) => agentId ?? ownAgent) : [session.ref.agentId],
    async seesSession(ref, sessionId) {
      if (!sees(ref)) return false;
      const known = loaded.get(sessionId);
      const state = known === undefined ? await storeOf(ref.agentId).load(ref, { signal }) : known;
      loaded.set(sessionId, state);
      const isIt = state !== null && !state.archived && state.sessionId === sessionId;
      return isIt && (session === null || session.sessionId === sessionId) && (seesSession?.(state) ?? true);
    },
  });
}

async function* wordHits(
  { namespace, searched, storeOf, sees, seesSession }: SearchedPlaces,
  { session, isLate: _isLate, onNote: _onNote, ...query }: ViewSearch & { readonly anyOf?: readonly string[] },
): AsyncGenerator<SearchHit, void, void> {
  const narrow = seesSession === undefined ? {} : { isWanted: seesSession };
  const asked = { ...query, ...narrow, namespace, state: "active" as const, session, isScan: false };
  const found: SearchHit[] = [];
  for (const agentId of session === null ? searched : [session.ref.agentId]) {
    const { index, hits } = searchHits(storeOf(agentId), { ...asked, agentId });
    for await (const hit of hits) {
      if (!sees(hit.ref)) continue;
      // One agent's hits are already in order; hits of several agents are sorted at the end.
      if (index === null || searched.length === 1) yield hit;
      else found.push(hit);
    }
  }
  yield* found.toSorted((one, other) => other.score - one.score);
}

/** Ends at the time limit of the call if there was a hit. Without an index the store is scanned record by record. */
async function* whileInTime(
  hits: AsyncIterable<SearchHit>,
  { isLate, onCut }: Pick<ViewSearch, "isLate" | "onCut">,
): AsyncGenerator<SearchHit, void, void> {
  let count = 0;
  try {
    for await (const hit of hits) {
      count += 1;
      yield hit;
    }
  } catch (error) {
    if (!isLate() || count === 0) throw error;
    onCut();
  }
}

function notFound(): ThroughlineError {
  return refused("SESSION_NOT_FOUND", "There is no such session.");
}

/**
 * Lists until a page of visible sessions is full. A cursor of the store names the last session of its page, so a page
 * that ends with a hidden session is listed again up to its last visible one.
 */
async function seenPage(
  store: SessionStore,
  { limit = listStep, cursor: first, ...query }: ListQuery,
  sees: (state: SessionState) => boolean,
): ReturnType<SessionStore["list"]> {
  const sessions: SessionState[] = [];
  let cursor = first;
  for (;;) {
    const from = cursor === undefined ? {} : { cursor };
    const page = await store.list({ ...query, ...from, limit: listStep });
    const seen = page.sessions.filter(sees).slice(0, limit - sessions.length);
    sessions.push(...seen);
    const last = seen.at(-1);
    if (sessions.length >= limit && last !== undefined) {
      const end = page.sessions.indexOf(last) + 1;
      const { nextCursor } = end === page.sessions.length ? page : await store.list({ ...query, ...from, limit: end });
      return { ...page, sessions, nextCursor };
    }
    if (page.nextCursor === null) return { ...page, sessions, nextCursor: null };
    cursor = page.nextCursor;
    // A store that answers without waiting would keep other calls waiting.
    await pause();
  }
}

function isInScope(ref: SessionRef, { namespace, agents, keyPrefixes }: MemoryScope): boolean {
  const named = agentOfKey(ref.key);
  const isItsOwn = named === null || named === ref.agentId;
  const isAgentSeen = agents === "*" || agents.includes(ref.agentId);
  const hasPrefix = keyPrefixes.length === 0 || keyPrefixes.some((prefix) => ref.key.startsWith(prefix));
  return ref.namespace === namespace && isAgentSeen && isItsOwn && hasPrefix;
}

/** Returns the store of one agent, so that a query cannot reach another agent. Null returns the store of all agents. */
function scopedStores(
  store: SessionStore,
  { namespace, agents }: MemoryScope,
): (agentId: string | null) => SessionStore {
  const scopes = new Map<string, SessionStore>();
  return (agentId) => {
    if (agents === "*" || agentId === null) return store;
    const scoped = scopes.get(agentId) ?? createAgentScope(store, { agentId, namespace });
    scopes.set(agentId, scoped);
    return scoped;
  };
}

/** Removes prefixes that another one covers, so that no session is listed twice. */
function shortest(prefixes: readonly string[]): readonly string[] {
  const all = [...new Set(prefixes)];
  return all.filter((prefix) => !all.some((other) => other !== prefix && prefix.startsWith(other)));
}

/** Intersects the allowed prefixes with the requested one. */
function narrowed(prefixes: readonly string[], asked: string): readonly string[] {
  if (prefixes.some((prefix) => asked.startsWith(prefix))) return [asked];
  return prefixes.filter((prefix) => prefix.startsWith(asked));
}

/** Returns the possible addresses of a key. An invalid key, or a key of another agent than the call's, has none. */
function refsOf(key: string, agentId: string | undefined, scope: MemoryScope): readonly SessionRef[] {
  const named = agentOfKey(key);
  if (named !== null && agentId !== undefined && named !== agentId) return [];
  const owner = named ?? agentId ?? scope.agentId;
  try {
    return sessionKeyAliases(key).map((alias) => ({ namespace: scope.namespace, agentId: owner, key: alias }));
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return [];
    throw error;
  }
}
