import type { ReadPayload, StoreLockOptions } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import {
  assertAgentId,
  assertKnownOptions,
  assertNamespace,
  assertSessionId,
  assertStoreOptions,
  fileIdsOf,
  givenEntry,
  isAgentId,
  quote,
  refused,
  withStored,
} from "@throughline/core/internal";
import * as kit from "@throughline/store-kit/internal";
import { createCapabilities, createHandleLife, prepareAppend } from "@throughline/store-kit/internal";
import { agentsFolder, namespacesIn, oddFolderFinding, type AgentAddress } from "./agent-folder.ts";
import { holdAgentLock } from "./agent-lock.ts";
import { AgentSessionFiles } from "./agent-session-files.ts";
import type { WrittenAppend } from "./append-batch.ts";
import { AppendQueues } from "./append-queue.ts";
import { DerivedFiles } from "./derived-files.ts";
import { entriesMark } from "./entries-mark.ts";
import { afterCommit, afterCommitAsync, fileError, withFileErrors } from "./file-work.ts";
import { createMaintenance } from "./maintenance.ts";
import { contextOf, jsonlStoreTable, keepsIndex, type JsonlStoreOptions } from "./jsonl-store-options.ts";
import { listSource } from "./list-sessions.ts";
import { AdoptedChanges } from "./adopt-changes.ts";
import { createFiles } from "./files-facet.ts";
import { forkSession } from "./fork-session.ts";
import { createPartials } from "./partials-facet.ts";
import { readSession } from "./read-session.ts";
import { appendReferring, recountFiles, recountFork } from "./refer-to-files.ts";
import { redactSession, sharersOf } from "./redact-session.ts";
import { commitPurge } from "./purges.ts";
import { archiveSession, openSettled, openToRemove, moveSession, saveSession } from "./session-changes.ts";
import { entryOf } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";
import { createSlices, type Slices } from "./slices.ts";
import type { StoreContext } from "./store-context.ts";
import { locateSession, underLocks, type ChangeContext } from "./under-locks.ts";
import { createVectors } from "./vectors-facet.ts";
import { createWatches, type Watches, watchKey, watchSession } from "./watch-session.ts";

/**
 * Opens a store in JSON Lines files, one per session, which pi and OpenClaw can read. Any number of processes on one
 * host may write. No file is opened before the first operation.
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 */
export function createJsonlStore(options: JsonlStoreOptions): core.SessionStore {
  assertKnownOptions<JsonlStoreOptions>("createJsonlStore", options, jsonlStoreTable, "options", "CONFIG_INVALID");
  return new JsonlStore(options);
}

const own = { watch: true, fork: true, maintenance: true, partials: true, files: true } as const;

class JsonlStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly #options: JsonlStoreOptions;
  readonly #context: StoreContext;
  readonly #agents: Map<string, AgentSessionFiles> = new Map();
  readonly #queues: AppendQueues;
  readonly #derived: DerivedFiles;
  readonly #listed: kit.ListedStates = new kit.ListedStates((event) => this.#context.emit(event));
  readonly #slices: Slices = createSlices();
  readonly #life: kit.HandleLife;
  readonly watch: core.WatchFacet;
  readonly fork: core.ForkFacet = {
    recodesOnPurge: true,
    fork: (ref, target, options) => this.#fork(ref, target, options),
    sharers: (ref, seqs) => this.#track(() => (this.#life.begin(), sharersOf(this.#agent(ref), ref, seqs))),
  };
  readonly maintenance: core.MaintenanceFacet;
  readonly partials: core.PartialsFacet;
  readonly files: core.FilesFacet;
  readonly vectors?: core.VectorsFacet;
  readonly #watches: Watches;

  constructor(options: JsonlStoreOptions) {
    this.#options = options;
    this.#life = createHandleLife(options.onEvent);
    this.capabilities = createCapabilities({
      name: "jsonl",
      durabilities: ["none", "process", "disk"],
      persistent: true,
      writers: "one-host",
      facets: { ...own, vectors: keepsIndex(options) },
      limits: options.limits,
    });
    this.#context = contextOf(options, this.capabilities.limits, () => {
      for (const agent of this.#agents.values()) agent.makeRoom();
    });
    this.#derived = new DerivedFiles(this.#context);
    this.#queues = new AppendQueues({ context: this.#context, derived: this.#derived });
    const { limits } = this.capabilities;
    const { begin } = this.#life;
    const track = <T>(work: () => Promise<T>): Promise<T> => this.#track(work, true);
    const agents = (): readonly AgentSessionFiles[] =>
      namespacesIn(this.#context).flatMap((one) => this.#agentsOf({ namespace: one }));
    const rebuild = (agent: AgentSessionFiles): Promise<readonly string[]> => this.#derived.rebuild(agent);
    const agentAt = (address: AgentAddress): AgentSessionFiles => this.#agentAt(address);
    this.maintenance = createMaintenance({ context: this.#context, agents, agentAt, rebuild, begin, track });
    this.partials = createPartials({ limits, agentOf: (ref) => this.#agent(ref), begin, track });
    this.files = createFiles({ context: this.#context, life: this.#life, agentAt });
    const vectors = {
      context: this.#context,
      life: this.#life,
      agentAt,
      list: (query: core.ListQuery) => this.list(query),
    };
    if (this.capabilities.vectors === true) this.vectors = createVectors({ ...vectors, track }, options.codec);
    const { files, emit } = this.#context;
    const watches = (this.#watches = createWatches(this.#context));
    this.watch = {
      watch: (ref, how) =>
        watchSession({ agent: this.#agent(ref), files, limits, watches, begin, track, emit }, ref, how),
    };
  }

  append(
    ref: core.SessionRef,
    drafts: readonly core.AppendDraft[],
    options: core.AppendOptions = {},
  ): Promise<core.AppendResult> {
    return this.#track(async () => {
      assertStoreOptions("append", options);
      this.#life.begin(options.signal);
      const agent = this.#agent(ref);
      const { ids, clock } = this.#context;
      const request = prepareAppend(drafts, options, { capabilities: this.capabilities, ids, clock });
      const referred = request.prepared.flatMap(({ fields }) => fileIdsOf(fields));
      const append = (): Promise<WrittenAppend> => this.#queues.of(agent, ref).append(request, referred);
      const { result, events, flushed } =
        referred.length === 0 ? await append() : await appendReferring(agent, ref, referred, append);
      if (flushed !== null) await flushed;
      if (result.replayed) return withStored(this, ref, { ...result, durability: request.durability }, options);
      for (const event of events) this.#context.emit(event);
      this.#derived.schedule(agent);
      this.#watches.hub.wake(watchKey(ref, result.head.sessionId));
      // Without a flush there is no other pause in which timers and signals could run.
      if (flushed === null) await this.#slices.next();
      return withStored(this, ref, result, options);
    }, true);
  }

  read<Payload extends ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncGenerator<core.RecordPage<Payload>> {
    const { limits } = this.capabilities;
    const agent = (): AgentSessionFiles => this.#agent(ref);
    const lookUp = (signal?: AbortSignal): Promise<SessionRow | null> => this.#lookUp(this.#agent(ref), ref, signal);
    return readSession({ life: this.#life, room: this.#context.room, limits, agent, lookUp }, ref, options);
  }

  /** Finds a session and prepares its transcript. `close` waits for this; the reads after it are synchronous. */
  async #lookUp(agent: AgentSessionFiles, ref: core.SessionRef, signal?: AbortSignal): Promise<SessionRow | null> {
    const found = await this.#track(async () => {
      const row = await agent.locate(ref);
      if (row !== null) await agent.prepare(row);
      return row;
    });
    this.#life.begin(signal);
    return found;
  }

  load(ref: core.SessionRef, options: core.LoadOptions = {}): Promise<core.SessionState | null> {
    return this.#track(async () => {
      assertStoreOptions("load", options);
      this.#life.begin(options.signal);
      const agent = this.#agent(ref);
      for (;;) {
        const row = await agent.locate(ref);
        const state = row === null ? null : await agent.readState(row);
        // The session was purged between the two reads. The key may have another session now.
        if (row === null || state !== null) return state;
      }
    });
  }

  save(ref: core.SessionRef, given: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    return this.#track(async () => {
      assertStoreOptions("save", options);
      this.#life.begin();
      const durability = kit.writeDurability(this.capabilities, options.durability);
      const entry = givenEntry(given);
      assertSessionId(entry.sessionId);
      const agent = this.#agent(ref);
      const nowMs = this.#context.clock.nowMs();
      const beganAtMs = options.createdAtMs === undefined ? null : kit.beginningMs({ ...options, nowMs });
      const terms = { ifRevision: options.ifRevision, beganAtMs };
      const state = await saveSession(this.#scope(agent, durability), ref, entry, terms);
      if (durability === "disk") await agent.log.flushed();
      this.#derived.schedule(agent);
      return state;
    });
  }

  list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    return this.#track(async () => {
      // Refused before any folder is looked at.
      const plan = kit.planList(query);
      this.#life.begin(query.signal);
      const agents = this.#agentsOf(query);
      const prepare = async (agent: AgentSessionFiles): Promise<void> => {
        await agent.adoption.adopt();
        if (agent.adoption.hasFinishedPurge) this.#derived.schedule(agent);
      };
      const goOn = (): void => this.#life.begin(query.signal);
      const source = listSource({ context: this.#context, agents, query, prepare, goOn }, plan);
      const page = await this.#listed.page(plan, source);
      const { purgedSource } = plan;
      if (purgedSource === null) return page;
      const times = agents.flatMap(({ log }) => log.image.sources.purged.get(purgedSource) ?? []);
      return { ...page, purgedAtMs: times.length === 0 ? null : Math.max(...times) };
    });
  }

  entriesMark({ namespace = "", agentId = "main" }: core.ListQuery): Promise<string | null> {
    return this.#track(
      async () => (this.#life.begin(), entriesMark(this.#context, this.#agentAt({ namespace, agentId }))),
    );
  }

  async exclusively<T>(agent: core.ListQuery, work: () => Promise<T>, options: StoreLockOptions): Promise<T> {
    this.#life.begin();
    const place = this.#agentAt(kit.lockedAgent(agent));
    return holdAgentLock({ context: this.#context, agent: place }, work, options);
  }

  async move(ref: core.SessionRef, action: core.MoveAction): Promise<core.SessionState> {
    this.#life.begin();
    kit.assertMoveAction(action);
    const change = (scope: ChangeContext, found: SessionRow): core.SessionState => {
      const { agent } = scope;
      const row = openSettled(agent, found);
      // This throws for an undecodable entry before anything is changed, because the answer needs the entry.
      entryOf(row);
      const moved = moveSession(scope, row, action);
      return afterCommit(agent.folder.agent, () => agent.state(moved));
    };
    const { result } = await this.#change(ref, action.kind === "restore", change);
    return result;
  }

  remove(ref: core.SessionRef, options: core.RemoveOptions = {}): Promise<void> {
    const change = (scope: ChangeContext, row: SessionRow): void =>
      options.purge === true
        ? commitPurge(scope, openToRemove(scope.agent, row))
        : void archiveSession(scope, openToRemove(scope.agent, row));
    return this.#track(async () => {
      assertStoreOptions("remove", options);
      this.#life.begin();
      const { agent } = await this.#change(ref, true, change);
      if (options.purge !== true) return;
      await agent.adoption.finishPurges();
      await agent.stored.collectPurged();
      await this.#derived.purge(agent);
    });
  }

  redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<core.RedactResult> {
    return this.#track(async () => {
      this.#life.begin();
      kit.assertRedaction(ids, options);
      const agent = this.#agent(ref);
      const result = await redactSession(this.#scope(agent, "disk"), ref, ids, options);
      await afterCommitAsync(agent.folder.agent, recountFiles(agent, ref, result.seqs));
      if ((options.entryFields ?? []).length > 0) await this.#derived.purge(agent);
      return result;
    });
  }

  close(): Promise<void> {
    const release = async (): Promise<void> => {
      await this.#derived.close();
      for (const agent of this.#agents.values()) await agent.close();
      this.#context.locks.close();
    };
    return this.#life.close(release, () => {
      this.#watches.hub.end(refused("STORE_CLOSED", "The store handle was closed."));
      this.#watches.events.end();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** `isOnce` is set for work that waits for descriptors itself, or that cannot be repeated. */
  async #track<T>(work: () => Promise<T>, isOnce: boolean = false): Promise<T> {
    const { room } = this.#context;
    room.enter();
    try {
      return await this.#life.track(isOnce ? work : () => room.patiently(work));
    } catch (error) {
      // A folder without read permission can fail any system call. The caller gets the same error for each of them.
      const { syscall, path = this.#options.root } = error as NodeJS.ErrnoException;
      throw syscall === undefined ? error : fileError(error, path, "unknown");
    } finally {
      room.leave();
    }
  }

  #agent(ref: core.SessionRef): AgentSessionFiles {
    kit.assertRef(ref);
    return this.#agentAt(ref);
  }

  #agentAt(address: AgentAddress): AgentSessionFiles {
    assertNamespace(address.namespace);
    assertAgentId(address.agentId);
    if (this.#options.create === false) this.#assertRoot();
    const key = `${address.namespace}/${address.agentId}`;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const agent: AgentSessionFiles = new AgentSessionFiles(this.#context, address, {
      onPending: () => this.#derived.schedule(agent),
      adoption: (files, said) => new AdoptedChanges(this.#context, files, said),
      records: (of, afterSeq) => this.#recordsOf(of, afterSeq),
    });
    this.#agents.set(key, agent);
    return agent;
  }

  async *#recordsOf(ref: core.SessionRef, afterSeq: number): AsyncGenerator<readonly core.SessionRecord[]> {
    for await (const { records } of this.read(ref, { afterSeq })) yield records.map(({ record }) => record);
  }

  #assertRoot(): void {
    const { root, files } = this.#context;
    if (withFileErrors(root, () => files.facts(root)) !== null) return;
    throw refused("STORE_NOT_FOUND", `There is no folder ${quote(root)}.`, { root });
  }

  #agentsOf({ namespace = "", agentId }: core.ListQuery): readonly AgentSessionFiles[] {
    assertNamespace(namespace);
    if (this.#options.create === false) this.#assertRoot();
    const { root, files } = this.#context;
    const folder = agentsFolder(root, namespace);
    const names = withFileErrors(folder, () => (files.facts(folder) === null ? [] : files.names(folder)));
    const wanted = names.filter((name) => isAgentId(name) && (agentId === undefined || name === agentId)).toSorted();
    return wanted.flatMap((name) =>
      this.#agentIn(`${folder}/${name}`, { namespace, agentId: name }, agentId === undefined),
    );
  }

  /** Reports an odd folder as a finding during a list of all agents, so that it does not hide the others. */
  #agentIn(path: string, address: AgentAddress, isOneOfAll: boolean): readonly AgentSessionFiles[] {
    const leaveOut = (odd: string): readonly AgentSessionFiles[] => {
      this.#context.emit({ name: "finding", ref: null, finding: oddFolderFinding(odd) });
      return [];
    };
    if (isOneOfAll && this.#context.files.facts(path)?.kind !== "folder") return leaveOut(path);
    try {
      const agent = this.#agentAt(address);
      return agent.exists ? [agent] : [];
    } catch (error) {
      if (!isOneOfAll || !hasErrorCode(error, "PATH_UNSAFE")) throw error;
      return leaveOut(String(error.details["path"]));
    }
  }

  #scope(agent: AgentSessionFiles, durability: core.Durability): ChangeContext {
    return { context: this.#context, agent, durability };
  }

  #change<T>(
    ref: core.SessionRef,
    isArchivedToo: boolean,
    work: (scope: ChangeContext, row: SessionRow) => T,
  ): Promise<{ readonly agent: AgentSessionFiles; readonly result: T }> {
    return this.#track(async () => {
      this.#life.begin();
      const agent = this.#agent(ref);
      const scope = this.#scope(agent, "disk");
      const wants = { find: () => locateSession(agent, ref, isArchivedToo), needsEntries: () => true };
      const { result } = await underLocks(scope, ref, wants, (row) => ({ result: work(scope, row) }));
      await agent.log.flushed();
      this.#derived.schedule(agent);
      return { agent, result };
    });
  }

  #fork(...[ref, target, options]: Parameters<core.ForkFacet["fork"]>): Promise<core.SessionState> {
    return this.#track(async () => {
      this.#life.begin();
      const forked = { ref: target, atSeq: kit.forkBound(ref, target, options), sessionId: options.sessionId };
      const agent = this.#agent(ref);
      const row = await forkSession(this.#scope(agent, "disk"), ref, forked);
      await agent.log.flushed();
      await afterCommitAsync(agent.folder.agent, recountFork(agent, ref, row));
      this.#derived.schedule(agent);
      return afterCommit(agent.folder.agent, () => agent.state(row));
    });
  }
}
