import { setTimeout as wait } from "node:timers/promises";
import {
  findMatches,
  loadExisting,
  readSearchQuery,
  searchSnippet,
  searchText,
  toolWord,
} from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { RecordPage, SearchHit, SearchQuery, SessionRef, SessionState, SessionStore } from "@throughline/core";
import type { SharedRecords, SourcedDraft } from "@throughline/core/internal";
import { forkBound, watchBounds } from "@throughline/store-kit/internal";

/** Search, fork and watch by the simplest means, on top of any store: so that cases about them have something to break. */
export function withFacets(inner: SessionStore): Partial<SessionStore> {
  const windows: StatedWindow[] = [];
  return {
    capabilities: Object.freeze({ ...inner.capabilities, search: true, fork: true, watch: true }),
    search: { search: (query) => scan(inner, query), lag: async () => (await inner.list({ limit: 1 }), 0) },
    fork: {
      fork: (ref, target, options) => fork(inner, ref, target, options, windows),
      sharers: (ref, seqs) => sharers(inner, ref, seqs),
    },
    watch: { watch: (ref, options) => poll(inner, ref, options) },
    append: async (ref, drafts, options) => {
      const result = await inner.append(ref, drafts, options);
      const { sessionId, lastSeq: atSeq, windowSeq } = result.head;
      if (options?.windowFromSeq !== undefined) windows.push({ sessionId, atSeq, windowSeq });
      return result;
    },
    redact: async (ref, ids, options) => {
      const result = await inner.redact(ref, ids, options);
      for (const relative of await relativesOf(inner, ref, ids)) await inner.redact(relative, ids, options);
      return result;
    },
  };
}

async function* sessionsOf(store: SessionStore, namespace = ""): AsyncGenerator<SessionState> {
  const { sessions } = await store.list({ namespace, state: "any", limit: 1000, sort: "key" });
  yield* sessions;
}

async function* scan(store: SessionStore, query: SearchQuery): AsyncGenerator<SearchHit> {
  const { plan, namespace, state, limit, toolWord: tool } = readSearchQuery(query);
  const hits = new Map<string, SearchHit>();
  const holders: Set<string>[] = [];
  const sessions: SessionState[] = [];
  for await (const session of sessionsOf(store, namespace)) sessions.push(session);
  // What is shared has the same seq and id in every copy, and counts where it was written first.
  const isFork = ({ entry }: SessionState): number => (entry["forkedFrom"] === undefined ? 0 : 1);
  for (const session of sessions.toSorted((one, other) => isFork(one) - isFork(other))) {
    const { ref, sessionId, archived } = session;
    const isMeant =
      (query.agentId ?? ref.agentId) === ref.agentId &&
      (query.key ?? ref.key) === ref.key &&
      (query.sessionId ?? sessionId) === sessionId &&
      (state === "any" || (state === "archived") === archived);
    if (!isMeant) continue;
    for await (const { records } of store.read(ref)) {
      for (const { record, seq, id, tsMs, storedAtMs } of records) {
        const found = searchText(record);
        const matches = found === null ? null : findMatches(plan, found.text);
        const atMs = tsMs ?? storedAtMs ?? 0;
        if (found === null || matches === null) continue;
        if ((query.role ?? found.role) !== found.role || atMs < (query.sinceMs ?? 0)) continue;
        if (atMs >= (query.untilMs ?? Infinity) || (tool !== null && !found.toolNames.map(toolWord).includes(tool)))
          continue;
        const score = matches.ranges.length / (found.text.length + 100);
        for (const clause of new Set(matches.ranges.flatMap(({ clauses }) => clauses)))
          holders[clause] = (holders[clause] ?? new Set()).add(`${seq} ${id}`);
        const hit = { ref, sessionId, seq, id, role: found.role, tsMs, score, ...searchSnippet(plan, found.text) };
        if (!hits.has(`${seq} ${id}`)) hits.set(`${seq} ${id}`, hit);
      }
    }
  }
  const rated = plan.needs === "all" ? [...hits.values()] : byRareWords([...hits], holders);
  yield* rated.toSorted((one, other) => other.score - one.score).slice(0, limit);
}

/** Rates each hit by how few records hold its words, the newest first. */
function byRareWords(
  hits: readonly (readonly [string, SearchHit])[],
  holders: readonly ReadonlySet<string>[],
): SearchHit[] {
  return hits
    .map(([name, hit]) => {
      const rarity = holders.map((names) => (names.has(name) ? 1 / names.size : 0));
      return { ...hit, score: rarity.reduce((sum, each) => sum + each, 0) };
    })
    .toReversed();
}

/** Which seq an append stated as the beginning of the window, and where it stands. */
interface StatedWindow {
  readonly sessionId: string;
  readonly atSeq: number;
  readonly windowSeq: number | null;
}

async function fork(
  store: SessionStore,
  ref: SessionRef,
  target: SessionRef,
  options: { readonly atSeq?: number | undefined; readonly sessionId: string },
  windows: readonly StatedWindow[],
): Promise<SessionState> {
  const bound = forkBound(ref, target, options);
  const { head } = await loadExisting(store, ref);
  const { sessionId } = options;
  const atSeq = Math.min(bound, head.lastSeq);
  if ((await store.load(target)) !== null)
    throw new ThroughlineError("SESSION_EXISTS", "The key is taken.", { outcome: "not-applied" });
  const forkedFrom = { agentId: ref.agentId, key: ref.key, sessionId: head.sessionId, atSeq };
  await store.save(target, { sessionId, forkedFrom }, { ifRevision: null });
  const stated = windows.findLast((each) => each.sessionId === head.sessionId && each.atSeq <= atSeq);
  const windowSeq = atSeq === head.lastSeq ? head.windowSeq : (stated?.windowSeq ?? null);
  const drafts: SourcedDraft[] = [];
  for await (const { records } of store.read(ref, { beforeSeq: atSeq + 1, payload: "source" }))
    for (const { source, record, isSourceCanonical } of records)
      drafts.push(isSourceCanonical ? { source } : { source, record });
  if (drafts.length > 0) await store.append(target, drafts, windowSeq === null ? {} : { windowFromSeq: windowSeq });
  return loadExisting(store, target);
}

/** A copy has the ids of its origin in the same places. */
async function sharers(store: SessionStore, ref: SessionRef, seqs: readonly number[]): Promise<SharedRecords[]> {
  const own = await idsOf(store, ref);
  const ownId = (await store.load(ref))?.sessionId;
  const found: SharedRecords[] = [];
  for await (const session of sessionsOf(store, ref.namespace)) {
    const theirs = await idsOf(store, session.ref);
    const shared = seqs.filter((seq) => own.has(seq) && own.get(seq) === theirs.get(seq));
    if (session.sessionId !== ownId && shared.length > 0)
      found.push({ ref: session.ref, sessionId: session.sessionId, seqs: shared });
  }
  return found;
}

async function idsOf(store: SessionStore, ref: SessionRef): Promise<ReadonlyMap<number, string>> {
  const ids = new Map<number, string>();
  for await (const { records } of store.read(ref)) for (const { seq, id } of records) ids.set(seq, id);
  return ids;
}

/** Other sessions that share a record with these ids, by where they were forked. */
async function relativesOf(store: SessionStore, ref: SessionRef, ids: readonly string[]): Promise<SessionRef[]> {
  const relatives: SessionRef[] = [];
  const own = (await store.load(ref))?.sessionId;
  for await (const session of sessionsOf(store, ref.namespace)) {
    const from = session.entry["forkedFrom"] as { readonly sessionId?: string } | undefined;
    const ownFrom = (await store.load(ref))?.entry["forkedFrom"] as { readonly sessionId?: string } | undefined;
    const isRelative = from?.sessionId === own || ownFrom?.sessionId === session.sessionId;
    if (!isRelative) continue;
    const held = new Set<string>();
    for await (const { records } of store.read(session.ref)) for (const { id } of records) held.add(id);
    if (ids.every((id) => held.has(id))) relatives.push(session.ref);
  }
  return relatives;
}

async function* poll(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<RecordPage> {
  const { afterSeq, signal } = watchBounds(options);
  let seq = afterSeq;
  let at = ref;
  const sessionId = (await store.load(ref))?.sessionId;
  while (!signal.aborted) {
    const now = await store.load(at);
    // A reset archives the session that was followed.
    if (sessionId !== undefined && now?.sessionId !== sessionId) at = { ...ref, archiveId: sessionId };
    for await (const page of store.read(at, { afterSeq: seq })) {
      yield page;
      seq = page.records.at(-1)?.seq ?? seq;
    }
    await wait(5);
  }
}
