import { setTimeout as sleep } from "node:timers/promises";
import {
  hasErrorCode,
  ThroughlineError,
  type FilesFacet,
  type ForkFacet,
  type ListQuery,
  type PartialsFacet,
  type RecordPage,
  type SearchFacet,
  type SessionPage,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type WatchFacet,
} from "@throughline/core";
import { assertMoveAction, assertRedaction, planList } from "@throughline/store-kit/internal";
import { assertStoreOptions, isFields, quote, refused } from "@throughline/core/internal";
import { mergePages, mergedHits } from "./merged-answers.ts";
import { movedCopyOf, type MovedCopy } from "./moved-copy.ts";
import { bringFiles, createMovingFiles, dropUnusedFiles, filesOfSession } from "./moving-files.ts";
import { contextOf } from "./store-context.ts";
import type { PostgresStore } from "./store-options.ts";

/** Limits the wait, in milliseconds, for a session between the source's commit and the target's. */
const longestWaitMs = 5000;
const pauseMs = 50;

/** Sets how often a watch at the source checks whether the session was moved, in milliseconds. */
const lookMs = 1000;

/** The store remembers this many addresses at the target, which need no lookup. */
const mostKnown = 100_000;

/**
 * Creates one store over two schemas while `relocateSessions(from, to)` moves sessions between them. Each operation
 * goes to the schema of its session, new sessions begin at the target, and lists and searches show both schemas. Use it
 * in every program that writes to the sessions, from before the first run until a run has moved all of them. Then open
 * `to` alone.
 *
 * A session at the target costs nothing more. A session at the source costs one lookup in each schema before every
 * operation. A purge and a redaction also reach the copy that a move leaves at the source. Maintenance stays with the
 * two stores. Closing it closes both.
 * @throws {ThroughlineError} INPUT_INVALID for stores that `createPostgresStore` did not create. Operations also throw
 * SESSION_BUSY for a session that a run left between its two commits.
 * @example
 * const store = createMovingStore(to, from);
 * const sessions = createSessions({ store });
 */
export function createMovingStore(to: PostgresStore, from: PostgresStore): SessionStore {
  for (const store of [to, from]) contextOf(store);
  return new MovingStore(to, from);
}

class MovingStore implements SessionStore {
  readonly capabilities: SessionStore["capabilities"];
  readonly search?: SearchFacet;
  readonly watch: WatchFacet;
  readonly fork: ForkFacet;
  readonly partials: PartialsFacet;
  readonly files: FilesFacet;
  readonly exclusively?: NonNullable<SessionStore["exclusively"]>;
  readonly #to: PostgresStore;
  readonly #from: PostgresStore;
  readonly #stores: { readonly to: PostgresStore; readonly from: PostgresStore };
  readonly #known = new Set<string>();

  constructor(to: PostgresStore, from: PostgresStore) {
    [this.#to, this.#from] = [to, from];
    this.#stores = { to, from };
    this.files = createMovingFiles({ to, from });
    this.capabilities = Object.freeze({ ...to.capabilities, maintenance: false, vectors: false });
    const { exclusively } = to;
    if (exclusively !== undefined) this.exclusively = exclusively.bind(to);
    this.watch = { watch: (ref, options) => this.#watch(ref, options) };
    this.fork = {
      fork: (ref, target, options) => this.#fork(ref, target, options),
      sharers: (ref, seqs) => this.#at(ref, async (store) => (await store.fork.sharers?.(ref, seqs)) ?? []),
    };
    this.partials = {
      write: (ref, partial) => this.#at(ref, (store) => store.partials.write(ref, partial)),
      read: (ref) => this.#at(ref, (store) => store.partials.read(ref)),
      remove: async (ref, fence) => {
        for (const store of [from, to]) await store.partials.remove(ref, fence);
      },
    };
    const { search: there } = to;
    const { search: here } = from;
    if (there !== undefined && here !== undefined) this.search = this.#searchOf(there, here);
  }

  append: SessionStore["append"] = (ref, drafts, options) =>
    this.#at(ref, async (store) => {
      if (isAddress(ref)) await bringFiles(store, this.#stores, ref, drafts);
      return store.append(ref, drafts, options);
    });

  load: SessionStore["load"] = async (ref, options = {}) => {
    assertStoreOptions("load", options);
    return isAddress(ref) ? ((await this.#find(ref, options))?.state ?? null) : this.#to.load(ref, options);
  };

  save: SessionStore["save"] = (ref, entry, options) => this.#at(ref, (store) => store.save(ref, entry, options));

  readWindow: NonNullable<SessionStore["readWindow"]> = (ref, options) =>
    this.#at(ref, (store) => store.readWindow(ref, options));

  async *read(...[ref, options]: Parameters<SessionStore["read"]>): AsyncGenerator<RecordPage<never>> {
    assertStoreOptions("read", options ?? {});
    // All pages come from the session that the first page found, because its copy stays at the source.
    const store = await this.#storeOf(ref);
    yield* store.read(ref, options) as AsyncIterable<RecordPage<never>>;
  }

  async list(query: ListQuery = {}): Promise<SessionPage> {
    assertStoreOptions("list", query);
    const plan = planList(query);
    return mergePages(plan, await this.#to.list(query), () => notMoved(this.#from, query, plan.limit));
  }

  move: SessionStore["move"] = async (ref, action) => {
    assertMoveAction(action);
    if (!isAddress(ref)) return this.#to.move(ref, action);
    return this.#at(ref, async (store) => {
      const { archiveId: _archive, ...active } = ref;
      if (action.kind === "rename") await this.#assertFree({ ...active, key: action.key }, ref, store);
      if (action.kind === "restore") await this.#assertFree(active, ref, store);
      return store.move(ref, action);
    });
  };

  remove: SessionStore["remove"] = async (ref, options = {}) => {
    assertStoreOptions("remove", options);
    const found = await this.#find(ref);
    const files = options.purge === true && found !== null ? await filesOfSession(this.#stores, ref) : [];
    await this.#at(ref, (store) => store.remove(ref, options));
    if (options.purge !== true || found === null) return;
    for (const copy of await this.#copiesOf(ref, found.state.sessionId)) await this.#from.remove(copy.ref, options);
    await dropUnusedFiles(this.#stores, ref, files);
  };

  redact: SessionStore["redact"] = async (ref, ids, options) => {
    assertRedaction(ids, options);
    const found = await this.#find(ref);
    const files = found === null ? [] : await filesOfSession(this.#stores, ref);
    const result = await this.#at(ref, (store) => store.redact(ref, ids, options));
    // The source is searched in any case, because the session may have been moved since the lookup.
    if (found === null) return result;
    for (const copy of await this.#copiesOf(ref, found.state.sessionId))
      for (const id of ids)
        // The copy ends at the move, so newer records are missing in it.
        await this.#from.redact(copy.ref, [id], options).catch((error: unknown) => {
          if (!hasErrorCode(error, "RECORD_NOT_FOUND")) throw error;
        });
    await dropUnusedFiles(this.#stores, ref, files);
    return result;
  };

  async close(): Promise<void> {
    await Promise.all([this.#to.close(), this.#from.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Finds the schema and the state of the session. Returns null if neither schema has it. */
  async #find(ref: SessionRef, options?: Parameters<SessionStore["load"]>[1]): Promise<Found | null> {
    if (!isAddress(ref)) return null;
    for (let waitedMs = 0; ; waitedMs += pauseMs) {
      const there = await this.#to.load(ref, options);
      if (there !== null) return this.#note(ref, { store: this.#to, state: there });
      const here = await this.#from.load(ref, options);
      if (here !== null && movedCopyOf(here.entry) === null) return { store: this.#from, state: here };
      const copies = await this.#copiesOf(ref);
      if (copies.length === 0) return null;
      if (copies.every(({ moved }) => moved.isThere)) {
        // The session was moved between the two lookups, unless it has been purged since.
        const state = await this.#to.load(ref, options);
        return state === null ? null : this.#note(ref, { store: this.#to, state });
      }
      if (waitedMs >= longestWaitMs)
        throw new ThroughlineError("SESSION_BUSY", `The session ${quote(ref.key)} is being moved.`, {
          outcome: "not-applied",
          details: { ...ref },
          remedy: "Run `throughline relocate` (or relocateSessions) once more: a run ended between its two commits.",
        });
      await sleep(pauseMs, undefined, options?.signal === undefined ? {} : { signal: options.signal });
    }
  }

  #note(ref: SessionRef, found: Found): Found {
    if (this.#known.size >= mostKnown) this.#known.clear();
    this.#known.add(addressOf(ref));
    return found;
  }

  async #storeOf(ref: SessionRef): Promise<PostgresStore> {
    if (!isAddress(ref) || this.#known.has(addressOf(ref))) return this.#to;
    return (await this.#find(ref))?.store ?? this.#to;
  }

  /** Runs the work where the session is, and again at the target if the session was moved in between. */
  async #at<Result>(ref: SessionRef, work: (store: PostgresStore) => Promise<Result>): Promise<Result> {
    for (;;) {
      const store = await this.#storeOf(ref);
      try {
        return await work(store);
      } catch (error) {
        if (!hasErrorCode(error, "SESSION_NOT_FOUND", "SESSION_ARCHIVED", "REVISION_CONFLICT")) throw error;
        this.#known.delete(addressOf(ref));
        // The work is repeated only for a session that left the source, so the loop ends.
        if (store === this.#to || (await this.#storeOf(ref)) === store) throw error;
      }
    }
  }

  /** Finds the copies that moves left at the source, of every session at this address or of the one with the id. */
  async #copiesOf(
    ref: SessionRef,
    sessionId?: string,
  ): Promise<readonly { readonly ref: SessionRef; readonly moved: MovedCopy }[]> {
    const { namespace, agentId, key, archiveId = "" } = ref;
    const query: ListQuery = { namespace, agentId, keyPrefix: key, state: "archived", sort: "key", limit: 1000 };
    const found: { readonly ref: SessionRef; readonly moved: MovedCopy }[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: SessionPage = await this.#from.list(cursor === undefined ? query : { ...query, cursor });
      for (const session of page.sessions) {
        const moved = session.ref.key === key ? movedCopyOf(session.entry) : null;
        if (moved?.archiveId === archiveId && (sessionId === undefined || session.sessionId === sessionId))
          found.push({ ref: session.ref, moved });
      }
      // Keys that only start with this key sort behind it.
      cursor = page.sessions.at(-1)?.ref.key === key ? page.nextCursor : null;
    }
    return found;
  }

  /**
   * Refuses a key that a session of the other schema holds.
   * @throws {ThroughlineError} SESSION_EXISTS
   */
  async #assertFree(target: SessionRef, ref: SessionRef, store: PostgresStore): Promise<void> {
    const other = await this.#find(target);
    if (other !== null && other.store !== store && (await this.#find(ref)) !== null)
      throw refused("SESSION_EXISTS", `A session holds the key ${quote(target.key)}.`, { ...target });
  }

  async #fork(...[ref, target, options]: Parameters<ForkFacet["fork"]>): Promise<SessionState> {
    assertStoreOptions("fork", options);
    return this.#at(ref, async (store) => {
      await this.#assertFree(target, ref, store);
      return store.fork.fork(ref, target, options);
    });
  }

  async *#watch(...[ref, options]: Parameters<WatchFacet["watch"]>): AsyncGenerator<RecordPage> {
    assertStoreOptions("watch", options);
    const { afterSeq, signal } = options;
    for (let reachedSeq = afterSeq; !signal.aborted;) {
      const store = await this.#storeOf(ref);
      if (store === this.#to) return yield* store.watch.watch(ref, { afterSeq: reachedSeq, signal });
      const left = new AbortController();
      const look = setInterval(() => {
        this.#storeOf(ref).then(
          (now) => {
            if (now !== store) left.abort();
          },
          // The watch itself reports the error of an unreachable store.
          () => undefined,
        );
      }, lookMs);
      try {
        const pages = store.watch.watch(ref, {
          afterSeq: reachedSeq,
          signal: AbortSignal.any([signal, left.signal]),
        });
        for await (const page of pages) {
          yield page;
          reachedSeq = Math.max(reachedSeq, page.lastSeq);
        }
      } catch (error) {
        if (!left.signal.aborted && (await this.#storeOf(ref)) === store) throw error;
      } finally {
        clearInterval(look);
      }
    }
  }

  #searchOf(to: SearchFacet, from: SearchFacet): SearchFacet {
    const isMoved = async (ref: SessionRef): Promise<boolean> => {
      const state = ref.archiveId === undefined ? null : await this.#from.load(ref);
      return state !== null && movedCopyOf(state.entry) !== null;
    };
    return {
      async *search(query) {
        assertStoreOptions("search", query);
        yield* mergedHits(query, to.search(query), from.search(query), isMoved);
      },
      lag: async () => (await to.lag()) + (await from.lag()),
      rebuild: async (options = {}) => {
        assertStoreOptions("rebuild", options);
        for (const each of [to, from]) await each.rebuild?.(options);
      },
    };
  }
}

interface Found {
  readonly store: PostgresStore;
  readonly state: SessionState;
}

/** The store refuses other values with its own error. */
function isAddress(ref: SessionRef): boolean {
  const given: unknown = ref;
  return (
    isFields(given) && [given["namespace"], given["agentId"], given["key"]].every((part) => typeof part === "string")
  );
}

function addressOf({ namespace, agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key, archiveId]);
}

/** Returns a page of the source without moved sessions, and whether more pages may follow. */
async function notMoved(store: PostgresStore, query: ListQuery, limit: number): Promise<SessionPage> {
  const sessions: SessionState[] = [];
  let cursor: string | null | undefined = query.cursor;
  let purged: Pick<SessionPage, "purgedAtMs"> = {};
  do {
    const page: SessionPage = await store.list(cursor === undefined ? query : { ...query, cursor });
    sessions.push(...page.sessions.filter(({ entry }) => movedCopyOf(entry) === null));
    cursor = page.nextCursor;
    if (page.purgedAtMs !== undefined) purged = { purgedAtMs: page.purgedAtMs };
  } while (cursor !== null && sessions.length < limit);
  return { sessions, nextCursor: cursor, ...purged };
}
