import type { ReadPayload, RecordWindow } from "@throughline/core/internal";
import { createHash } from "node:crypto";
import type * as core from "@throughline/core";
import {
  assertStoreOptions,
  refused,
  systemClock,
  systemRandom,
  systemRecordIds,
  untilAborted,
  withStored,
} from "@throughline/core/internal";
import * as kit from "@throughline/store-kit/internal";
import { createCapabilities, createHandleLife, prepareAppend } from "@throughline/store-kit/internal";
import { holdAgentLock } from "./agent-lock.ts";
import { addressOf, appendRecords, appendSql, keyedFailure } from "./append-records.ts";
import {
  checkedOptions,
  type CheckedOptions,
  layoutOf,
  maxConnectionsOf,
  quoteSchema,
  schemaOf,
} from "./checked-options.ts";
import { ConnectionPool, type PostgresPool } from "./connection-pool.ts";
import { createFiles } from "./files-facet.ts";
import { poolsOf } from "./open-pool.ts";
import { plainLayout } from "./layout.ts";
import { forkSession, sharersOf } from "./fork-session.ts";
import { listSessions } from "./list-sessions.ts";
import { createMaintenance } from "./maintenance-facet.ts";
import { openSchema } from "./open-schema.ts";
import { NodeHubs } from "./node-hubs.ts";
import { NodeShares } from "./node-shares.ts";
import { createPartials } from "./partials-facet.ts";
import { readRecords, readWindowPage } from "./read-pages.ts";
import { redactRecords } from "./redact-records.ts";
import { stateOf } from "./row-values.ts";
import { createSearch, dropUnwantedIndex } from "./search-index.ts";
import { SessionSignals } from "./session-signals.ts";
import { createWatchHub, watchKey, watchSession, type WatchOptions } from "./watch-session.ts";
import { saveEntry } from "./save-entry.ts";
import { stateColumns } from "./save-function.ts";
import { moveSession, removeSession } from "./session-changes.ts";
import type { PostgresStore, PostgresStoreOptions } from "./store-options.ts";
import { type FoundSchema, keepContext, SessionIdCache, type StoreContext } from "./store-context.ts";
import { createVectors } from "./vectors-facet.ts";
import { settingsPassedOn } from "./statement-settings.ts";
import { describeUrl } from "./postgres-url.ts";

/**
 * Opens a store in PostgreSQL, for any number of processes on any number of machines. The first operation connects, so
 * that operation fails when the server cannot be reached.
 * @throws {ThroughlineError} STORE_URL_INVALID, CONFIG_INVALID
 */
export function createPostgresStore(options: PostgresStoreOptions): PostgresStore {
  return new PostgresSessionStore(checkedOptions(options));
}

class PostgresSessionStore implements PostgresStore {
  readonly capabilities: core.StoreCapabilities;
  readonly fork: core.ForkFacet;
  readonly watch: core.WatchFacet;
  readonly search?: core.SearchFacet;
  readonly maintenance: core.MaintenanceFacet;
  readonly partials: core.PartialsFacet;
  readonly files: core.FilesFacet;
  readonly vectors?: core.VectorsFacet;
  readonly exclusively?: NonNullable<core.SessionStore["exclusively"]>;
  readonly #signals: SessionSignals | null;
  readonly #hubs: NodeHubs;
  readonly #options: CheckedOptions;
  readonly #life: kit.HandleLife;
  readonly #context: StoreContext;
  readonly #ids: core.RecordIds;
  readonly #clock: core.Clock;
  readonly #listed: kit.ListedStates;
  /** Ends the store's own pool. A lent pool stays open. */
  readonly #endPool: () => Promise<void>;
  #lockPool: ConnectionPool | null = null;
  #opening: Promise<void> | null = null;
  #emptying: Promise<void> | null = null;

  constructor(options: CheckedOptions) {
    this.#options = options;
    this.capabilities = createCapabilities({
      name: "postgres",
      // "none" is stored as "process", because synchronous_commit off is the shortest wait that a commit can have.
      durabilities: ["none", "process", "disk"],
      persistent: true,
      writers: "many-hosts",
      facets: {
        fork: true,
        watch: true,
        maintenance: true,
        partials: true,
        files: true,
        // Under a codec the index holds tokens in place of words.
        search: options.codec === undefined || options.codec.searchToken !== undefined,
        vectors: true,
      },
      limits: options.limits,
      ...(options.defaultDurability === undefined ? {} : { defaultDurability: options.defaultDurability }),
    });
    this.#life = createHandleLife(options.onEvent);
    this.#listed = new kit.ListedStates((event) => this.#life.announce(event));
    this.#ids = options.ids ?? systemRecordIds;
    this.#clock = options.clock ?? systemClock;
    const { pool, listening, locking, end } = poolsOf(options);
    this.#endPool = end;
    this.#context = this.#createContext(pool);
    keepContext(this, this.#context);
    const { clock = systemClock, random = systemRandom, notify = true } = options;
    const schema = schemaOf(options);
    this.#signals =
      notify && listening !== null
        ? new SessionSignals(this.#context.pool, listening, channelOf(schema), {
            clock,
            random,
            missed: () => this.#hubs.lookSoon(),
          })
        : null;
    const begin = async (signal?: AbortSignal): Promise<void> => {
      this.#life.begin(signal);
      await this.#ready(signal);
    };
    this.fork = {
      fork: (ref, target, each) => this.#write(() => forkSession(this.#context, ref, target, each)),
      sharers: (ref, seqs) => this.#write(() => sharersOf(this.#context, ref, seqs)),
    };
    const { pollMs, timeoutMs } = options;
    const how = { clock: this.#clock, pollMs, timeoutMs, maxConnections: maxConnectionsOf(options), ready: begin };
    const nodeOf = (ref: core.SessionRef): string | null => this.#context.found.nodes?.nodeOf(ref) ?? null;
    this.#hubs = new NodeHubs((node) => createWatchHub(this.#context, how, node), nodeOf);
    this.watch = { watch: (ref, each) => this.#watch(ref, each) };
    this.partials = createPartials(this.#context, (work) => this.#write(work));
    const ready = (): Promise<void> => this.#ready();
    this.files = createFiles(this.#context, { life: this.#life, clock: this.#clock, random, ready });
    if (locking !== null) this.exclusively = this.#createLock(locking, begin);
    this.vectors = createVectors(this.#context, { life: this.#life, codec: options.codec, ready });
    if (this.capabilities.search) this.search = createSearch(this.#context, begin);
    this.maintenance = createMaintenance(this.#context, begin, { search: this.search, files: this.files });
  }

  async *#watch(ref: core.SessionRef, options: WatchOptions): AsyncGenerator<core.RecordPage> {
    this.#life.begin();
    const bounds = kit.watchBounds(options);
    await this.#ready();
    const check = (): void => this.#life.begin();
    const hub = this.#hubs.of(ref);
    yield* watchSession({ context: this.#context, signals: this.#signals, hub, check }, ref, bounds);
  }

  #write<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#during(undefined, async () => {
      await this.#readyToWrite();
      return work();
    });
  }

  #createLock(locking: PostgresPool, begin: () => Promise<void>): NonNullable<core.SessionStore["exclusively"]> {
    const pool = this.#createPool(locking);
    this.#lockPool = pool;
    return async (agent, work, options) => {
      const address = kit.lockedAgent(agent);
      await begin();
      return holdAgentLock({ pool, schema: this.#context.schema, clock: this.#clock, ...address }, work, options);
    };
  }

  #createPool(lent: PostgresPool, shares?: NodeShares): ConnectionPool {
    const { maxWaiting, timeoutMs, connectTimeoutMs, url } = this.#options;
    return new ConnectionPool(lent, {
      maxWaiting,
      timeoutMs,
      connectTimeoutMs,
      prepare: this.#options.prepare ?? true,
      clock: this.#clock,
      random: this.#options.random ?? systemRandom,
      place: url === undefined ? "the given pool" : describeUrl(url),
      ...(shares === undefined ? {} : { shares }),
      settings: () => (this.#context?.found.isDistributed === true ? settingsPassedOn : ""),
    });
  }

  #createContext(lent: PostgresPool): StoreContext {
    const { codec, lockTimeoutMs, maxWaiting } = this.#options;
    const schema = schemaOf(this.#options);
    const maxConnections = maxConnectionsOf(this.#options);
    const quoted = quoteSchema(schema);
    const found: FoundSchema = {
      layout: plainLayout,
      isDistributed: false,
      nodes: null,
      appendSql: appendSql(quoted, plainLayout),
    };
    const shares = new NodeShares(maxConnections, maxWaiting, (agent) => found.nodes?.nodeOf(agent) ?? null);
    const pool = this.#createPool(lent, shares);
    return {
      pool,
      schema: quoted,
      rows: { coder: kit.createPayloadCoder(codec), isCoded: codec !== undefined },
      tokenOf: (namespace, purpose) => (codec === undefined ? null : kit.codecTokens(codec, namespace, purpose)),
      isIndexOff: codec !== undefined && codec.searchToken === undefined,
      plainRows: { coder: kit.createPayloadCoder(undefined), isCoded: false },
      found,
      limits: this.capabilities.limits,
      lockTimeout: `${Math.max(1, Math.trunc(lockTimeoutMs))}ms`,
      sessionIds: new SessionIdCache(10_000),
      load: (ref) => this.#load(ref, undefined),
      announce: (...events) => this.#life.announce(...events),
      notify: (ref, sessionNo) => {
        this.#hubs.wake(watchKey(this.#context.found.layout, ref, sessionNo));
        this.#signals?.announce(sessionNo);
      },
    };
  }

  async append(
    ref: core.SessionRef,
    drafts: readonly core.AppendDraft[],
    options: core.AppendOptions = {},
  ): Promise<core.AppendResult> {
    assertStoreOptions("append", options);
    return this.#during(options.signal, async () => {
      const { capabilities } = this;
      const request = prepareAppend(drafts, options, { capabilities, ids: this.#ids, clock: this.#clock });
      const kept = { ...request, durability: keptDurability(request.durability) };
      try {
        await this.#readyToWrite(options.signal);
        this.#life.begin(options.signal);
        const result = await appendRecords(this.#context, ref, kept);
        return result.replayed ? await withStored(this, ref, result, options) : result;
      } catch (error) {
        throw keyedFailure(error, options);
      }
    });
  }

  async *read<Payload extends ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncGenerator<core.RecordPage<Payload>> {
    assertStoreOptions("read", options);
    this.#life.begin(options.signal);
    await this.#ready(options.signal);
    yield* readRecords(this.#context, ref, options, () => this.#life.begin(options.signal));
  }

  async readWindow(
    ref: core.SessionRef,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<RecordWindow> {
    assertStoreOptions("readWindow", options);
    return this.#during(options.signal, async () => {
      await this.#ready(options.signal);
      return readWindowPage(this.#context, ref, options, () => this.#life.begin(options.signal));
    });
  }

  async load(ref: core.SessionRef, options: core.LoadOptions = {}): Promise<core.SessionState | null> {
    assertStoreOptions("load", options);
    return this.#during(options.signal, async () => {
      await this.#ready(options.signal);
      return this.#load(ref, options.signal);
    });
  }

  async #load(ref: core.SessionRef, signal: AbortSignal | undefined): Promise<core.SessionState | null> {
    const address = addressOf(ref);
    if (address === null) return null;
    const { layout } = this.#context.found;
    const [row] = await this.#context.pool.run(
      `SELECT ${stateColumns.join(", ")} FROM ${this.#context.schema}.sessions
       WHERE namespace = $1 AND agent_id = $2 AND key = $3 AND archive_id = $4${layout.and("", "$5")}`,
      [...address, ...layout.values(ref)],
      { signal, isRead: true, isFrequent: true, agent: ref },
    );
    return row === undefined ? null : stateOf(this.#context.rows, row);
  }

  async save(ref: core.SessionRef, entry: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    assertStoreOptions("save", options);
    return this.#during(undefined, async () => {
      const durability = keptDurability(kit.writeDurability(this.capabilities, options.durability));
      await this.#readyToWrite();
      return saveEntry(this.#context, ref, entry, { ...options, durability });
    });
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    assertStoreOptions("list", query);
    return this.#during(query.signal, async () => {
      await this.#ready(query.signal);
      return listSessions(this.#context, this.#listed, query);
    });
  }

  async move(ref: core.SessionRef, action: core.MoveAction): Promise<core.SessionState> {
    kit.assertMoveAction(action);
    return this.#during(undefined, async () => {
      await this.#readyToWrite();
      return moveSession(this.#context, ref, action);
    });
  }

  async remove(ref: core.SessionRef, options: core.RemoveOptions = {}): Promise<void> {
    assertStoreOptions("remove", options);
    return this.#during(undefined, async () => {
      await this.#readyToWrite();
      return removeSession(this.#context, ref, options);
    });
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<core.RedactResult> {
    kit.assertRedaction(ids, options);
    return this.#during(undefined, async () => {
      await this.#readyToWrite();
      return redactRecords(this.#context, ref, ids, options);
    });
  }

  close(): Promise<void> {
    const release = async (): Promise<void> => {
      await this.#signals?.end();
      this.#context.pool.end();
      this.#lockPool?.end();
      await this.#endPool();
    };
    return this.#life.close(release, () => this.#hubs.end(refused("STORE_CLOSED", "The store handle was closed.")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Runs an operation that closing waits for. */
  async #during<Result>(signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    this.#life.begin(signal);
    return this.#life.track(work);
  }

  #ready(signal?: AbortSignal): Promise<void> {
    const opening = this.#open();
    if (signal === undefined) return opening;
    return untilAborted(opening, signal).catch((error: unknown) => {
      this.#life.begin(signal);
      throw error;
    });
  }

  /** Also empties the index, at the first write, where nothing may be in it. */
  async #readyToWrite(signal?: AbortSignal): Promise<void> {
    await this.#ready(signal);
    if (!this.#context.isIndexOff) return;
    this.#emptying ??= dropUnwantedIndex(this.#context).catch((error: unknown) => {
      this.#emptying = null;
      throw error;
    });
    await this.#emptying;
  }

  #open(): Promise<void> {
    if (this.#opening !== null) return this.#opening;
    const schema = schemaOf(this.#options);
    const { codec, migrate = true, partitions, rowSecurity = false } = this.#options;
    const layout = layoutOf(this.#options);
    const { found, pool } = this.#context;
    this.#opening = openSchema(
      { pool, schemaName: schema, schema: this.#context.schema, clock: this.#clock },
      { migrate, partitions, rowSecurity, codecName: codec?.name ?? null, ...(layout === undefined ? {} : { layout }) },
    )
      .then((opened) => void Object.assign(found, opened))
      .catch((error: unknown) => {
        // The reason of the failure may be gone at the next operation, so the schema is opened again.
        this.#opening = null;
        throw error;
      });
    return this.#opening;
  }
}

/**
 * PostgreSQL truncates a channel name in LISTEN and refuses one over 63 bytes in NOTIFY, so a longer name is hashed.
 */
function channelOf(schema: string): string {
  const channel = `${schema}_grown`;
  if (channel.length <= 63) return channel;
  return `throughline_${createHash("sha256").update(schema).digest("hex").slice(0, 32)}_grown`;
}

function keptDurability(asked: core.Durability): core.Durability {
  return asked === "none" ? "process" : asked;
}
