import type { LoadOptions, MoveAction, RedactResult, RemoveOptions } from "@throughline/core";
import type { ReadPayload, StoreLockOptions } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import {
  assertStoreOptions,
  givenEntry,
  systemClock,
  systemRandom,
  systemRecordIds,
  withStored,
} from "@throughline/core/internal";
import {
  assertRedaction,
  assertRef,
  createCapabilities,
  createHandleLife,
  createPayloadCoder,
  createRowCoder,
  lockedAgent,
  prepareAppend,
  writeDurability,
} from "@throughline/store-kit/internal";
import { readPages } from "@throughline/store-kit";
import { holdAgentLock } from "./agent-lock.ts";
import { appendRecords, hasGivenIds } from "./append-records.ts";
import { IndexFiller } from "./index-filler.ts";
import { indexTexts } from "./index-texts.ts";
import { createEntriesMark, SessionLists } from "./list-sessions.ts";
import { createMaintenance } from "./maintenance-facet.ts";
import { checkedOptions, sqliteStoreTable } from "./sqlite-store-options.ts";
import type { OpenOptions } from "./connection.ts";
import { defaultDriver, type SqliteDriver } from "./connection.ts";
import { inOneSnapshot } from "./one-snapshot.ts";
import { readPage, type ReadTarget } from "./read-pages.ts";
import { catchUpSlice, isFarBehind } from "./record-ids.ts";
import { deleteFilesSlice } from "./file-references.ts";
import { createFiles } from "./files-facet.ts";
import { PartialRows } from "./partial-rows.ts";
import { createPartials } from "./partials-facet.ts";
import { PurgeKeeper } from "./purge-session.ts";
import { redactSession } from "./redact-session.ts";
import { StoreSearch } from "./search-facet.ts";
import { deleteOldIndexSlice, SearchIndex } from "./search-index.ts";
import { archiveSession, moveSession, saveEntry } from "./session-changes.ts";
import { findSession, stateOf, storedEntry } from "./session-rows.ts";
import { createFork } from "./fork-session.ts";
import { StoreHandle } from "./store-handle.ts";
import { createVectors } from "./vectors-facet.ts";
import { UncertainKeys } from "./uncertain-keys.ts";
import { createWatch } from "./watch-session.ts";
import type { SqliteStoreOptions } from "./sqlite-store-options.ts";

/**
 * Creates a store in one SQLite file, which any number of processes of one host may write. No file is opened before the
 * first operation, so that operation fails when the file cannot be opened.
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 */
export function createSqliteStore(options: SqliteStoreOptions): core.SessionStore {
  return new SqliteStore(checkedOptions("createSqliteStore", options, sqliteStoreTable));
}

export function sqliteCapabilities({
  defaultDurability = "disk",
  limits,
  hasSearch,
}: Pick<SqliteStoreOptions, "defaultDurability" | "limits"> & {
  readonly hasSearch: boolean;
}): core.StoreCapabilities {
  return createCapabilities({
    name: "sqlite",
    // A write with "none" gets the durability "process", because a commit reaches the page cache in any case.
    durabilities: ["none", "process", "disk"],
    defaultDurability,
    persistent: true,
    writers: "one-host",
    facets: {
      search: hasSearch,
      watch: true,
      fork: true,
      maintenance: true,
      partials: true,
      files: true,
      vectors: true,
    },
    limits,
  });
}

const durable = { durability: "disk" } as const;

class SqliteStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly watch: core.WatchFacet;
  readonly fork: core.ForkFacet;
  readonly maintenance: core.MaintenanceFacet;
  readonly partials: core.PartialsFacet;
  readonly files: core.FilesFacet;
  readonly entriesMark: () => Promise<string>;
  declare readonly search?: core.SearchFacet;
  declare readonly vectors?: core.VectorsFacet;
  readonly #handle: StoreHandle;
  readonly #lists: SessionLists;
  readonly #filler: IndexFiller;
  readonly #purges: PurgeKeeper;
  readonly #uncertain = new UncertainKeys();
  readonly #driver: SqliteDriver;

  constructor(options: SqliteStoreOptions) {
    const { path, create = true, codec, clock = systemClock } = options;
    const rows = createRowCoder(codec);
    const texts = indexTexts(codec, rows);
    const search = new SearchIndex(texts);
    this.capabilities = sqliteCapabilities({ ...options, hasSearch: !texts.isOff });
    const open: OpenOptions = {
      path,
      create,
      codecName: codec?.name ?? null,
      driver: (this.#driver = options.driver ?? defaultDriver),
      recover: options.recover ?? true,
    };
    this.#handle = new StoreHandle(
      {
        path,
        rows,
        isCoded: codec !== undefined,
        search,
        partials: new PartialRows(),
        clock,
        ids: options.ids ?? systemRecordIds,
        random: options.random ?? systemRandom,
        limits: this.capabilities.limits,
        lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
      },
      open,
      createHandleLife(options.onEvent),
    );
    this.#lists = new SessionLists(this.#handle);
    this.watch = createWatch(this.#handle);
    this.partials = createPartials(this.#handle, this.#durability(undefined));
    this.files = createFiles(this.#handle, createPayloadCoder(codec), this.#durability(undefined));
    this.fork = createFork(this.#handle);
    this.maintenance = createMaintenance(this.#handle, this.files, open);
    this.entriesMark = createEntriesMark(this.#handle);
    const filler = new IndexFiller(this.#handle, texts.isOff ? null : search, options.searchFill ?? "background");
    this.#handle.follow(() => filler.poke());
    this.#filler = filler;
    const purges = new PurgeKeeper(this.#handle, filler);
    this.#handle.follow((connection) => purges.poke(connection));
    this.#purges = purges;
    if (!texts.isOff) this.search = new StoreSearch(this.#handle, search, filler);
    this.vectors = createVectors(this.#handle, codec);
  }

  async append(
    ref: core.SessionRef,
    drafts: readonly core.AppendDraft[],
    options: core.AppendOptions = {},
  ): Promise<core.AppendResult> {
    assertStoreOptions("append", options);
    const { context, life } = this.#handle;
    life.begin(options.signal);
    assertRef(ref);
    const durability = this.#durability(options.durability);
    const store = { capabilities: this.capabilities, ids: context.ids, clock: context.clock };
    const request = prepareAppend(drafts, { ...options, durability }, store);
    if (hasGivenIds(request)) await this.#catchUp(ref);
    const write = (lookedFor?: () => void): Promise<core.AppendResult> =>
      this.#handle.write((at) => appendRecords(at, ref, request, lookedFor), {
        durability,
        signal: options.signal,
        isAppend: true,
      });
    const { keyed } = request;
    if (keyed === null) return write();
    const result = await this.#uncertain.follow(ref, { key: keyed.key, isNew: options.isNewKey === true }, write);
    return result.replayed ? withStored(this, ref, result, options) : result;
  }

  read<Payload extends ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncGenerator<core.RecordPage<Payload>> {
    assertStoreOptions("read", options);
    const payload = options.payload ?? ("record" as Payload);
    const target: ReadTarget = { ref, session: null };
    let goesOn = false;
    return readPages(options, async (range) => {
      // Without a turn of the event loop between two pages, a long session would hold the loop until it is read.
      if (goesOn) await new Promise((resolve) => setImmediate(resolve));
      const page = await this.#handle.read(
        (connection) => readPage(this.#handle.context, connection, target, range, payload),
        options.signal,
      );
      goesOn = page.records.at(-1)?.seq !== (range.order === "ascending" ? page.lastSeq : 1);
      return page;
    });
  }

  async load(ref: core.SessionRef, options: LoadOptions = {}): Promise<core.SessionState | null> {
    assertStoreOptions("load", options);
    this.#handle.life.begin(options.signal);
    const { rows } = this.#handle.context;
    return this.#handle.read((connection) => {
      const { statements } = connection;
      return inOneSnapshot(connection, () => {
        const row = findSession(statements, ref);
        return row === undefined ? null : stateOf(rows, row, storedEntry(statements, row));
      });
    }, options.signal);
  }

  async save(ref: core.SessionRef, entry: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    assertStoreOptions("save", options);
    this.#handle.life.begin();
    const durability = this.#durability(options.durability);
    const own = givenEntry(entry);
    return this.#scrubbed(this.#handle.write((context) => saveEntry(context, ref, own, options), { durability }));
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    assertStoreOptions("list", query);
    this.#handle.life.begin(query.signal);
    return this.#lists.page(query);
  }

  async move(ref: core.SessionRef, action: MoveAction): Promise<core.SessionState> {
    return this.#scrubbed(this.#handle.write((context) => moveSession(context, ref, action), durable));
  }

  async remove(ref: core.SessionRef, options: RemoveOptions = {}): Promise<void> {
    assertStoreOptions("remove", options);
    this.#handle.life.begin();
    if (options.purge === true)
      await this.#purges.purge(ref).finally(() => this.#handle.context.partials.takeDropped());
    else await this.#scrubbed(this.#handle.write((context) => archiveSession(context, ref), durable));
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<RedactResult> {
    this.#handle.life.begin();
    assertRedaction(ids, options);
    await this.#catchUp(ref);
    return this.#handle.remove(
      (context) => redactSession(context, ref, ids, options),
      durable,
      ({ connection }) => deleteOldIndexSlice(connection) || deleteFilesSlice(connection),
    );
  }

  async exclusively<Result>(
    agent: Pick<core.ListQuery, "namespace" | "agentId">,
    work: () => Promise<Result>,
    options: StoreLockOptions,
  ): Promise<Result> {
    const address = lockedAgent(agent);
    assertStoreOptions("exclusively", options);
    // The lock is a file beside the database, so a store that is missing or cannot be opened is reported first.
    await this.#handle.read(() => null, options?.signal);
    const { path, clock } = this.#handle.context;
    return holdAgentLock({ path, clock, driver: this.#driver, ...address }, work, options);
  }

  /** Cuts the log after a session was archived, because its open reply must not stay in the log of SQLite. */
  async #scrubbed<Result>(work: Promise<Result>): Promise<Result> {
    const result = await work;
    if (this.#handle.context.partials.takeDropped()) await this.#handle.remove(() => undefined, durable);
    return result;
  }

  close(): Promise<void> {
    return this.#handle.close(() => this.#filler.stop());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #durability(asked: core.Durability | undefined): core.Durability {
    const given = writeDurability(this.capabilities, asked);
    return given === "none" ? "process" : given;
  }

  /** Enters the ids of a long session in slices, so that the write that needs them is short. */
  async #catchUp(ref: core.SessionRef): Promise<void> {
    let goesOn = await this.#handle.read(({ statements }) => {
      const row = findSession(statements, ref);
      return row !== undefined && isFarBehind(statements, row);
    });
    while (goesOn) {
      goesOn = await this.#handle.write(
        ({ connection: { statements } }) => {
          const row = findSession(statements, ref);
          return row !== undefined && catchUpSlice(statements, row);
        },
        { durability: "process" },
      );
    }
  }
}
