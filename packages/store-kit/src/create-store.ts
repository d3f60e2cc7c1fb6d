import type * as core from "@throughline/core";
import {
  assertKnownOptions,
  assertStoreOptions,
  optionKinds,
  type OptionTable,
  type ReadPayload,
  type RecordFor,
  refused,
  sessionNotFound,
  storeFactoryKinds,
  type StoreLimits,
  type StoreLockOptions,
  systemClock,
  systemRandom,
  systemRecordIds,
  withStored,
} from "@throughline/core/internal";
import { assertRedaction, assertRef } from "./assert-arguments.ts";
import { type Awaitable, chain, isPending } from "./awaitable.ts";
import { ask, BackendSessions } from "./backend-sessions.ts";
import { createCapabilities } from "./create-capabilities.ts";
import type { FileBackend } from "./file-backend.ts";
import { createFilesFacet } from "./files-facet.ts";
import { createHandleLife, type HandleLife } from "./handle-life.ts";
import { holdLock, lockedAgent } from "./hold-lock.ts";
import { isBehind, planList, sessionsBehind, withinBytes } from "./list-page.ts";
import { ListedStates } from "./list-states.ts";
import { purgedAtMs } from "./namespace-fields.ts";
import { assertFence, preparePartial, readPartial } from "./partial-reply.ts";
import { createPayloadCoder } from "./payload-coder.ts";
import { prepareAppend, writeDurability } from "./plan-append.ts";
import { type PageRange, pageRows, readPages } from "./read-pages.ts";
import { SessionCoder } from "./session-coder.ts";
import { createVectorsFacet } from "./vectors-facet.ts";
import { SessionWrites } from "./session-writes.ts";
import type { KeptSession, ListScan, KeptRecord, SessionRow, StoreBackend } from "./store-backend.ts";

/** Describes a store for `createStore`: what it declares, and what its users may set. */
interface BackendStoreOptions extends Pick<core.StoreCapabilities, "name" | "durabilities" | "persistent" | "writers"> {
  /** Sets the limits that differ from core's `defaultStoreLimits`. @default none */
  readonly limits?: Partial<StoreLimits> | undefined;
  /** Encodes records, entries and open replies. @default they are kept as JSON */
  readonly codec?: core.PayloadCodec | undefined;
  /** Supplies the times that the store stamps. @default the system's clock */
  readonly clock?: core.Clock | undefined;
  /** Supplies record ids. @default ids of this process */
  readonly ids?: core.RecordIds | undefined;
  /** Receives the events of the store. @default no listener */
  readonly onEvent?: core.SessionEventListener | undefined;
  /** Holds the facets that the database offers beside the backend's reads and writes. @default none */
  readonly facets?: Pick<core.SessionStore, "search" | "watch" | "fork" | "maintenance"> | undefined;
}

const { flag, filledText, listOf, object, oneOf, required } = optionKinds;
const optionTable: OptionTable<BackendStoreOptions> = {
  clock: storeFactoryKinds.clock,
  ids: storeFactoryKinds.ids,
  onEvent: storeFactoryKinds.onEvent,
  codec: storeFactoryKinds.codec,
  limits: object, // `createCapabilities` checks each
  name: required(filledText),
  durabilities: required(listOf(oneOf(["none", "process", "disk"]))),
  persistent: required(flag),
  writers: required(oneOf(["one-handle", "one-host", "many-hosts"])),
  facets: object,
};

/**
 * Creates a store from the reads and writes of a database. The store keeps the whole contract: the order in which an
 * append is refused, revisions, resets, idempotency keys, turns, redactions, open replies, pages and cursors. It has
 * `exclusively` when the backend has `tryLock`.
 *
 * A write reads the session, plans, and commits on the condition that nothing has changed. When another process was
 * first, it reads and plans again. Writes of one handle to one session run in order.
 * @throws {ThroughlineError} INPUT_INVALID for a missing or unknown option, CONFIG_INVALID when a limit is not a whole
 *   number from 1 on
 * @example
 * const store = createStore(backend, { name: "mine", durabilities: ["disk"], persistent: true, writers: "many-hosts" });
 */
export function createStore(backend: StoreBackend, options: BackendStoreOptions): core.SessionStore {
  assertKnownOptions<BackendStoreOptions>("createStore", options, optionTable);
  if (backend.tryLock === undefined) return new BackendStore(backend, options);
  return new LockingStore(backend, backend.tryLock.bind(backend), options);
}

class BackendStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly partials: core.PartialsFacet;
  readonly files?: core.FilesFacet;
  readonly vectors?: core.VectorsFacet;
  readonly search?: core.SearchFacet;
  readonly watch?: core.WatchFacet;
  readonly fork?: core.ForkFacet;
  readonly maintenance?: core.MaintenanceFacet;
  readonly #backend: StoreBackend;
  readonly #ids: core.RecordIds;
  readonly #clock: core.Clock;
  readonly #life: HandleLife;
  readonly #sessions: BackendSessions;
  readonly #coder: SessionCoder;
  readonly #writes: SessionWrites;
  readonly #listed: ListedStates;

  constructor(backend: StoreBackend, { facets = {}, codec, clock, ids, onEvent, ...declared }: BackendStoreOptions) {
    const { search, watch, fork, maintenance } = facets;
    const has = {
      search: search !== undefined,
      watch: watch !== undefined,
      fork: fork !== undefined,
      maintenance: maintenance !== undefined,
    };
    const { vectors } = backend;
    this.capabilities = createCapabilities({
      ...declared,
      facets: { ...has, partials: true, files: backend.files !== undefined, vectors: vectors !== undefined },
    });
    this.#backend = backend;
    this.#ids = ids ?? systemRecordIds;
    this.#clock = clock ?? systemClock;
    this.#life = createHandleLife(onEvent);
    this.#sessions = new BackendSessions(backend, this.#life, this.#clock, this.capabilities.defaultDurability);
    this.#coder = new SessionCoder(codec);
    this.#writes = new SessionWrites(this.#sessions, this.#coder);
    this.#listed = new ListedStates((event) => this.#life.announce(event));
    this.partials = this.#partialsFacet();
    if (backend.files !== undefined) this.files = this.#filesFacet(backend.files, codec);
    if (vectors !== undefined) this.vectors = createVectorsFacet(vectors, this.#life, codec);
    Object.assign(this, facets);
  }

  async append(
    ref: core.SessionRef,
    drafts: readonly core.AppendDraft[],
    options: core.AppendOptions = {},
  ): Promise<core.AppendResult> {
    assertStoreOptions("append", options);
    this.#life.begin(options.signal);
    const { capabilities } = this;
    const request = prepareAppend(drafts, options, { capabilities, ids: this.#ids, clock: this.#clock });
    assertRef(ref);
    const written = this.#sessions.write(
      ref,
      (found, nowMs) => this.#writes.append(existing(ref, found), request, options, nowMs),
      options.signal,
    );
    const result = isPending(written) ? await written : written;
    return options.return === undefined ? result : withStored(this, ref, result, options);
  }

  read<Payload extends ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncIterable<core.RecordPage<Payload>> {
    assertStoreOptions("read", options);
    const payload = options.payload ?? ("record" as Payload);
    let row: SessionRow | null = null;
    return readPages(options, (range) => {
      this.#life.begin(options.signal);
      // Later pages come from the session of the first page, also after a rename or an archive.
      const found = row === null ? this.#rowAt(ref) : this.#sessions.refound(row);
      const page = chain(found, (now) => {
        if (now === null) throw sessionNotFound(ref);
        row = now;
        const { ref: at, sessionId, head } = now;
        const { lastSeq } = head;
        const place = { ref: at, sessionId };
        const decode = (one: KeptRecord): RecordFor<Payload> => this.#coder.decode(place, one, payload);
        return chain(this.#rowsOf(now, range), (rows) => ({ records: rows.map(decode), lastSeq }));
      });
      return isPending(page) ? this.#life.track(() => page) : page;
    });
  }

  #rowAt(ref: core.SessionRef): Awaitable<SessionRow | null> {
    assertRef(ref);
    return chain(this.#sessions.find(ref), (found) => found?.row ?? null);
  }

  /** Reads the rows of one page, in portions of about the bytes of a page. */
  #rowsOf(row: SessionRow, range: PageRange): Awaitable<readonly KeptRecord[]> {
    const { pageRecords, pageBytes } = this.capabilities.limits;
    const { lastSeq } = row.head;
    const newest = Math.min(lastSeq, range.beforeSeq - 1);
    const isUp = range.order === "ascending";
    const wanted = Math.min(range.left, pageRecords, newest - range.afterSeq);
    const average = Math.max(row.recordBytes / Math.max(lastSeq, 1), 1);
    const rows: KeptRecord[] = [];
    let bytes = 0;
    const readOn = (): Awaitable<readonly KeptRecord[]> => {
      if (rows.length >= wanted || bytes >= pageBytes) return pageRows(rows, range, this.capabilities.limits);
      const count = Math.min(wanted - rows.length, Math.ceil((pageBytes - bytes) / average));
      const from = isUp ? range.afterSeq + 1 + rows.length : newest - rows.length - count + 1;
      return chain(this.#sessions.records(row, from, from + count - 1), (portion) => {
        if (portion.length < count) return this.#missing(row, portion, from);
        rows.push(...(isUp ? portion : portion.toReversed()));
        for (const one of portion) bytes += one.bytes;
        return readOn();
      });
    };
    return readOn();
  }

  /** Reports records that are missing, in a session that still is there. */
  #missing(row: SessionRow, rows: readonly KeptRecord[], fromSeq: number): Awaitable<never> {
    return chain(this.#sessions.refound(row), (now) => {
      if (now === null) throw sessionNotFound(row.ref);
      throw missingRecords(rows, fromSeq, row.head.lastSeq);
    });
  }

  async load(ref: core.SessionRef, options: core.LoadOptions = {}): Promise<core.SessionState | null> {
    assertStoreOptions("load", options);
    this.#life.begin(options.signal);
    assertRef(ref);
    const found = this.#sessions.find(ref);
    const session = isPending(found) ? await this.#life.track(() => found) : found;
    return session === null ? null : this.#coder.state(session);
  }

  async save(ref: core.SessionRef, given: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    assertStoreOptions("save", options);
    this.#life.begin();
    writeDurability(this.capabilities, options.durability);
    assertRef(ref);
    return this.#sessions.write(ref, (found, nowMs) => this.#writes.save(found, ref, given, { ...options, nowMs }));
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    const plan = planList(query);
    this.#life.begin(query.signal);
    const { namespace = "", agentId, keyPrefix = "", sinceMs = -Infinity, untilMs = Infinity } = query;
    const { pageBytes } = this.capabilities.limits;
    const find = (after: ListScan["after"], limit: number): Awaitable<readonly ListedRow[]> => {
      const includes = isBehind(query, after);
      const { sort, state, sourceDigest } = plan;
      const scan = { namespace, agentId: agentId ?? null, keyPrefix, sinceMs, untilMs, sort, state, sourceDigest };
      const found = ask(() => this.#backend.list({ ...scan, after, limit, includes }), null);
      return chain(found, (sessions) => {
        const rows = sessions.map(({ row, entry }) => {
          const { ref, sessionId, updatedAtMs, sourceDigest } = row;
          return { ref, sessionId, updatedAtMs, sourceDigest, row, entry };
        });
        return withinBytes(sessionsBehind(rows, query, after).slice(0, limit), ({ entry }) => entry.length, pageBytes);
      });
    };
    const source = { find, stateOf: (found: ListedRow) => this.#coder.state(found), path: null };
    return this.#life.track(async () => {
      const page = await this.#listed.page(plan, source);
      if (plan.purgedSource === null) return page;
      const fields = this.#sessions.fieldsOf(namespace);
      return { ...page, purgedAtMs: await purgedAtMs(plan.purgedSource, agentId, fields) };
    });
  }

  async move(ref: core.SessionRef, action: core.MoveAction): Promise<core.SessionState> {
    this.#life.begin();
    assertRef(ref);
    return this.#sessions.write(ref, (found) => this.#writes.move(existing(ref, found), action));
  }

  async remove(ref: core.SessionRef, options: core.RemoveOptions = {}): Promise<void> {
    assertStoreOptions("remove", options);
    this.#life.begin();
    assertRef(ref);
    return this.#sessions.write(ref, (found, nowMs) => this.#writes.remove(existing(ref, found), options, nowMs));
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<core.RedactResult> {
    this.#life.begin();
    assertRedaction(ids, options);
    assertRef(ref);
    return this.#sessions.write(ref, (found, nowMs) => this.#writes.redact(existing(ref, found), ids, options, nowMs));
  }

  close(): Promise<void> {
    return this.#life.close(async () => this.#backend.close?.());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #partialsFacet(): core.PartialsFacet {
    const { limits } = this.capabilities;
    return {
      write: async (ref, given) => {
        this.#life.begin();
        const prepared = preparePartial(given, limits);
        assertRef(ref);
        return this.#sessions.write(ref, (found) => this.#writes.writePartial(existing(ref, found), prepared));
      },
      read: async (ref) => {
        this.#life.begin();
        assertRef(ref);
        const text = await this.#life.track(() => this.#writes.partial(ref));
        return text === null ? null : readPartial(text, ref);
      },
      remove: async (ref, fence) => {
        this.#life.begin();
        assertFence(fence);
        assertRef(ref);
        return this.#sessions.write(ref, (found) => this.#writes.removePartial(found, fence));
      },
    };
  }

  #filesFacet(backend: FileBackend, codec: core.PayloadCodec | undefined): core.FilesFacet {
    return createFilesFacet({
      backend,
      coder: createPayloadCoder(codec),
      life: this.#life,
      limits: this.capabilities.limits,
      clock: this.#clock,
      newId: () => systemRandom.uuid(),
    });
  }

  /** Runs work under the lock of an agent, for a store that has one. */
  protected async underLock<Result>(
    tryLock: TryLock,
    agent: LockedAgent,
    work: () => Promise<Result>,
    options: StoreLockOptions,
  ): Promise<Result> {
    this.#life.begin();
    const locked = lockedAgent(agent);
    const { agentId } = locked;
    const timedOut = (waitedMs: number): core.ThroughlineError =>
      refused("STORE_LOCKED", `The lock of agent ${agentId} was held for ${waitedMs} ms.`, { agentId, waitedMs });
    return holdLock({ clock: systemClock, tryLock: () => ask(() => tryLock(locked), null), timedOut }, work, options);
  }
}

type TryLock = NonNullable<StoreBackend["tryLock"]>;
type LockedAgent = Pick<core.ListQuery, "namespace" | "agentId">;

class LockingStore extends BackendStore {
  readonly #tryLock: TryLock;

  constructor(backend: StoreBackend, tryLock: TryLock, options: BackendStoreOptions) {
    super(backend, options);
    this.#tryLock = tryLock;
  }

  exclusively<Result>(agent: LockedAgent, work: () => Promise<Result>, options: StoreLockOptions): Promise<Result> {
    return this.underLock(this.#tryLock, agent, work, options);
  }
}

/** Stands for a session in a list, with what its position depends on. */
interface ListedRow extends KeptSession, Pick<SessionRow, "ref" | "sessionId" | "updatedAtMs" | "sourceDigest"> {}

function existing(ref: core.SessionRef, found: KeptSession | null): KeptSession {
  if (found === null) throw sessionNotFound(ref);
  return found;
}

function missingRecords(rows: readonly KeptRecord[], fromSeq: number, lastSeq: number): Error {
  const expectedSeq = fromSeq + rows.filter(({ seq }, index) => seq === fromSeq + index).length;
  return refused("STORE_CORRUPT", `The store is damaged: record ${expectedSeq} of ${lastSeq} is missing.`, {
    expectedSeq,
    lastSeq,
  });
}
