import type { LoadOptions, MoveAction, RedactResult, RemoveOptions } from "@throughline/core";
import type { ReadPayload, StoreLimits, StoreLockOptions } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import {
  assertKnownOptions,
  assertStoreOptions,
  entrySourceDigest,
  optionKinds,
  type OptionTable,
  refused,
  sessionNotFound,
  sessionRefText,
  storeFactoryKinds,
  systemClock,
  systemRecordIds,
  withStored,
} from "@throughline/core/internal";
import {
  assertFence,
  assertPartialFits,
  assertRedaction,
  assertRef,
  createRowCoder,
  type HandleLife,
  isPartialOf,
  ListedStates,
  lockedAgent,
  pageRows,
  planFieldRemoval,
  planList,
  preparePartial,
  readPartial,
  type RecordRow,
  type RowCoder,
  seqsIn,
  sessionsBehind,
  sessionState,
  withinBytes,
  writeDurability,
} from "@throughline/store-kit/internal";
import {
  createCapabilities,
  createHandleLife,
  holdLock,
  planAppend,
  planMove,
  planRedaction,
  planRemove,
  planSave,
  prepareAppend,
  readPages,
} from "@throughline/store-kit";
import {
  createMemoryData,
  emptySession,
  notePurge,
  placeSession,
  purgedAtMs,
  type MemoryData,
  type MemorySession,
} from "./memory-data.ts";

/** Configures `createMemoryStore`. */
export interface MemoryStoreOptions {
  /** Supplies the times that the store stamps. @default the system's clock */
  readonly clock?: core.Clock;
  /** Supplies record ids. @default ids of this process */
  readonly ids?: core.RecordIds;
  /**
   * Receives findings, changes of sessions, and records. The store ignores errors that it throws.
   * @default no listener
   */
  readonly onEvent?: core.SessionEventListener;
  /** Encodes payloads and entries in memory. @default payloads are kept as they are */
  readonly codec?: core.PayloadCodec;
  /** Overrides single limits of the store. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits>;
  /** Holds the sessions. Stores over the same data share them, and they outlive the handle. @default data of its own */
  readonly data?: MemoryData;
}

export const memoryStoreTable: OptionTable<MemoryStoreOptions> = {
  clock: storeFactoryKinds.clock,
  ids: storeFactoryKinds.ids,
  onEvent: storeFactoryKinds.onEvent,
  codec: storeFactoryKinds.codec,
  limits: storeFactoryKinds.limits,
  data: optionKinds.object,
};

/**
 * Creates a store that keeps its sessions in memory until the process ends.
 *
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 * @example
 * const store = createMemoryStore();
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): core.SessionStore {
  assertKnownOptions<MemoryStoreOptions>("createMemoryStore", options, memoryStoreTable, "options", "CONFIG_INVALID");
  return new MemoryStore(options);
}

/**
 * Applies what core plans. Each method does everything that can fail before it changes data, so no change is partial.
 */
class MemoryStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly partials: core.PartialsFacet;
  readonly #data: MemoryData;
  readonly #clock: core.Clock;
  readonly #ids: core.RecordIds;
  readonly #coder: RowCoder;
  readonly #life: HandleLife;
  readonly #listed: ListedStates;

  constructor({ data, clock, ids, codec, limits, onEvent }: MemoryStoreOptions) {
    this.#data = data ?? createMemoryData();
    this.#clock = clock ?? systemClock;
    this.#ids = ids ?? systemRecordIds;
    this.#coder = createRowCoder(codec);
    this.#life = createHandleLife(onEvent);
    this.#listed = new ListedStates((event) => this.#life.announce(event));
    const persistent = data !== undefined;
    this.capabilities = createCapabilities({
      name: "memory",
      durabilities: ["none"],
      writers: "one-handle",
      persistent,
      facets: { partials: true },
      limits,
    });
    this.partials = {
      write: async (ref, given) => this.#writePartial(ref, given),
      read: async (ref) => this.#readPartial(ref),
      remove: async (ref, fence) => this.#removePartial(ref, fence),
    };
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
    const session = this.#found(ref);
    const target = {
      frame: session.frame,
      entry: () => this.#entry(session),
      holdsId: (id: string) => session.seqById.has(id),
      findKeyed: (key: string, digest: string) => session.remembered.find(key, digest),
    };
    const nowMs = this.#clock.nowMs();
    const { result, linked, frame, entry, events } = planAppend(request, target, nowMs);
    if (result.replayed) return withStored(this, ref, result, options);
    const firstSeq = session.rows.length + 1;
    const rows = linked.map((item, index) =>
      this.#coder.encodeRecord(frame, item, { seq: firstSeq + index, storedAtMs: nowMs }),
    );
    if (entry !== null)
      Object.assign(session, { entry: this.#coder.encodeEntry(frame, entry), source: entrySourceDigest(entry) });
    session.rows.push(...rows);
    for (const { id, seq } of rows) session.seqById.set(id, seq);
    session.frame = frame;
    if (request.keyed !== null) session.remembered.remember(request.keyed.key, request.keyed.digest, result, nowMs);
    this.#life.announce(...events);
    if (options.return === undefined) return result;
    return { ...result, stored: rows.map((row) => this.#coder.decodeRecord(frame, row, "record")) };
  }

  read<Payload extends ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncIterable<core.RecordPage<Payload>> {
    assertStoreOptions("read", options);
    const payload = options.payload ?? ("record" as Payload);
    let session: MemorySession | null = null;
    return readPages(options, (range) => {
      this.#life.begin(options.signal);
      // Later pages come from the session that the first page found, also after a move or a rename.
      const found = this.#found(session?.frame.ref ?? ref);
      session ??= found;
      if (found !== session) throw sessionNotFound(ref);
      const { frame, rows } = session;
      const wanted = seqsIn(range, rows.length).map((seq) => rows[seq - 1] as RecordRow);
      const page = pageRows(wanted, range, this.capabilities.limits);
      return { records: page.map((row) => this.#coder.decodeRecord(frame, row, payload)), lastSeq: rows.length };
    });
  }

  async load(ref: core.SessionRef, options: LoadOptions = {}): Promise<core.SessionState | null> {
    assertStoreOptions("load", options);
    this.#life.begin(options.signal);
    const session = this.#at(ref);
    return session === undefined ? null : this.#state(session);
  }

  async save(ref: core.SessionRef, given: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    assertStoreOptions("save", options);
    this.#life.begin();
    writeDurability(this.capabilities, options.durability);
    const current = this.#at(ref);
    const terms = { ...options, nowMs: this.#clock.nowMs() };
    const plan = planSave(current?.frame ?? null, ref, given, terms);
    const entry = this.#coder.encodeEntry(plan.frame, plan.entry);
    if (plan.isNew) this.#data.ids.claim(plan.frame);
    if (current !== undefined && plan.archived !== null) placeSession(this.#data, current, plan.archived);
    const goesOn = current !== undefined && !plan.isNew;
    const source = entrySourceDigest(plan.entry);
    const session = goesOn ? Object.assign(current, { entry, source }) : emptySession(plan.frame, entry, source);
    placeSession(this.#data, session, plan.frame);
    this.#life.announce(...plan.events);
    return this.#state(session);
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    const plan = planList(query);
    this.#life.begin(query.signal);
    const sessions = this.#data.sessions.values().map(({ frame, source }) => ({ ...frame, sourceDigest: source }));
    const behind = [...sessionsBehind(sessions, query, plan.after)];
    const { pageBytes } = this.capabilities.limits;
    const page = await this.#listed.page(plan, {
      find: (_after, limit) => {
        const found = withinBytes(behind.slice(0, limit), ({ ref }) => this.#found(ref).entry.length, pageBytes);
        behind.splice(0, found.length);
        return found;
      },
      stateOf: ({ ref }) => this.#state(this.#found(ref)),
      path: null,
    });
    if (plan.purgedSource === null) return page;
    return { ...page, purgedAtMs: purgedAtMs(this.#data, plan.purgedSource, query) };
  }

  async move(ref: core.SessionRef, action: MoveAction): Promise<core.SessionState> {
    this.#life.begin();
    const session = this.#found(ref);
    const holderOf = (target: core.SessionRef): string | undefined =>
      this.#data.sessions.get(sessionRefText(target))?.frame.sessionId;
    const { frame, events } = planMove(session.frame, action, holderOf);
    session.entry = this.#coder.encodeEntry(frame, this.#entry(session));
    placeSession(this.#data, session, frame);
    this.#life.announce(...events);
    return this.#state(session);
  }

  async remove(ref: core.SessionRef, options: RemoveOptions = {}): Promise<void> {
    assertStoreOptions("remove", options);
    this.#life.begin();
    const session = this.#found(ref);
    const { frame, events } = planRemove(session.frame, options);
    if (frame === null) notePurge(this.#data, session, this.#clock.nowMs());
    placeSession(this.#data, session, frame);
    this.#life.announce(...events);
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<RedactResult> {
    this.#life.begin();
    assertRedaction(ids, options);
    const session = this.#found(ref);
    const { frame, rows, seqById } = session;
    const { seqs, events } = planRedaction(frame, ids, (id) => seqById.get(id));
    const info = { reason: options.reason, redactedAtMs: this.#clock.nowMs() };
    const redacted = seqs.map((seq) => this.#coder.redactRecord(frame, rows[seq - 1] as RecordRow, info));
    const { entryFields = [] } = options;
    const plan =
      entryFields.length === 0 ? null : planFieldRemoval(frame, this.#entry(session), entryFields, info.redactedAtMs);
    const entry = plan === null ? session.entry : this.#coder.encodeEntry(plan.frame, plan.entry);
    for (const row of redacted) if (row !== null) rows[row.seq - 1] = row;
    const source = plan === null ? session.source : entrySourceDigest(plan.entry);
    Object.assign(session, { entry, source, frame: plan?.frame ?? frame, partial: null });
    this.#life.announce(...events, ...(plan?.events ?? []));
    return { seqs };
  }

  async exclusively<Result>(
    agent: Pick<core.ListQuery, "namespace" | "agentId">,
    work: () => Promise<Result>,
    options: StoreLockOptions,
  ): Promise<Result> {
    this.#life.begin();
    const { namespace, agentId } = lockedAgent(agent);
    const { locked } = this.#data;
    const key = `${namespace}/${agentId}`;
    const tryLock = (): (() => void) | null =>
      locked.has(key) ? null : (locked.add(key), () => void locked.delete(key));
    const timedOut = (waitedMs: number): core.ThroughlineError =>
      refused("STORE_LOCKED", `The lock of agent ${agentId} was held for ${waitedMs} ms.`, { agentId, waitedMs });
    return holdLock({ clock: systemClock, tryLock, timedOut }, work, options);
  }

  close(): Promise<void> {
    return this.#life.close(async () => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #writePartial(ref: core.SessionRef, given: core.PartialReply): void {
    this.#life.begin();
    const { partial, text } = preparePartial(given, this.capabilities.limits);
    const session = this.#found(ref);
    const { frame } = session;
    assertPartialFits(frame.ref, frame.head, partial);
    const { fence, turnId } = partial;
    session.partial = { fence, turnId, kept: this.#coder.encodePartial(frame, turnId, text) };
  }

  #readPartial(ref: core.SessionRef): core.PartialReply | null {
    this.#life.begin();
    const { frame, partial } = this.#found(ref);
    if (partial === null || !isPartialOf(frame.head, { ...partial, sessionId: frame.sessionId })) return null;
    return readPartial(this.#coder.decodePartial(frame, partial.turnId, partial.kept), frame.ref);
  }

  #removePartial(ref: core.SessionRef, fence: number): void {
    this.#life.begin();
    assertFence(fence);
    const session = this.#at(ref);
    if (session?.partial != null && session.partial.fence <= fence) session.partial = null;
  }

  #at(ref: core.SessionRef): MemorySession | undefined {
    assertRef(ref);
    return this.#data.sessions.get(sessionRefText(ref));
  }

  #found(ref: core.SessionRef): MemorySession {
    const session = this.#at(ref);
    if (session === undefined) throw sessionNotFound(ref);
    return session;
  }

  #entry({ frame, entry }: MemorySession): core.SessionEntry {
    return this.#coder.decodeEntry(frame, entry);
  }

  #state(session: MemorySession): core.SessionState {
    const messageCount = session.rows.filter(({ type }) => type === "message").length;
    return sessionState(session.frame, this.#entry(session), messageCount);
  }
}
