import { createHash } from "node:crypto";
import type * as core from "@throughline/core";
import { systemClock, systemRandom, systemRecordIds } from "@throughline/core/node";
import {
  createPayloadCoder,
  defaultIdempotency,
  defaultStoreLimits,
  draftsFingerprint,
  ownEntry,
  prepareDrafts,
  refused,
  writeDurability,
} from "@throughline/core/store";
import { appendRecords } from "./append-records.ts";
import { listSessions } from "./list-sessions.ts";
import { defaultDriver, type SqliteDriver } from "./open-connection.ts";
import { firstPosition, readPage } from "./read-pages.ts";
import { catchUpRows, catchUpSlice } from "./record-ids.ts";
import { moveSession, redactSession, removeSession, saveEntry } from "./session-changes.ts";
import { findSession, stateOf, storedEntry } from "./session-rows.ts";
import { StoreHandle } from "./store-handle.ts";

export interface SqliteStoreOptions {
  /** The database file. Its folder is made when it is missing. */
  readonly path: string;
  /** False: a file that does not exist is STORE_NOT_FOUND. @default true */
  readonly create?: boolean;
  /** Around payloads and entries. Its name is kept in the store: another codec is refused. @default none */
  readonly codec?: core.PayloadCodec;
  /** @default the system's clock */
  readonly clock?: core.Clock;
  /** @default ids of this process */
  readonly ids?: core.RecordIds;
  /** @default the system's randomness */
  readonly random?: core.RandomSource;
  readonly onEvent?: core.SessionEventListener;
  /** What a write gets that does not ask. @default "disk" */
  readonly defaultDurability?: core.Durability;
  /** How long an operation waits for other processes, in milliseconds. @default 10,000 */
  readonly lockTimeoutMs?: number;
  /** @default core's `defaultStoreLimits` */
  readonly limits?: Partial<core.StoreLimits>;
  /** Opens the database; another build of better-sqlite3, or one that fails on purpose. @default better-sqlite3 */
  readonly driver?: SqliteDriver;
}

/**
 * A store in one SQLite file. Any number of processes of one host may write. Nothing is opened before the first
 * operation, which is the one that fails when the file cannot be opened.
 */
export function createSqliteStore(options: SqliteStoreOptions): core.SessionStore {
  return new SqliteStore(options);
}

class SqliteStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly #handle: StoreHandle;

  constructor(options: SqliteStoreOptions) {
    const {
      path,
      create = true,
      codec,
      clock = systemClock,
      ids = systemRecordIds,
      random = systemRandom,
      defaultDurability = "disk",
    } = options;
    this.capabilities = Object.freeze<core.StoreCapabilities>({
      specification: 1,
      name: "sqlite",
      // "none" gets what "process" gets: the page cache is the least a commit can do.
      durabilities: Object.freeze(["none", "process", "disk"] as const),
      defaultDurability,
      persistent: true,
      writers: "one-host",
      search: false,
      watch: false,
      fork: false,
      maintenance: false,
      limits: Object.freeze({ ...defaultStoreLimits, ...options.limits }),
      idempotency: defaultIdempotency,
    });
    const { limits } = this.capabilities;
    const rows = { coder: createPayloadCoder(codec), isCoded: codec !== undefined };
    const scene = { path, rows, clock, ids, random, limits, lockTimeoutMs: options.lockTimeoutMs ?? 10_000 };
    this.#handle = new StoreHandle(
      scene,
      { path, create, codecName: codec?.name ?? null, driver: options.driver ?? defaultDriver },
      options.onEvent,
    );
  }

  async append(
    ref: core.SessionRef,
    drafts: readonly core.AppendDraft[],
    options: core.AppendOptions = {},
  ): Promise<core.AppendResult> {
    this.#handle.begin(options.signal);
    const durability = this.#durability(options.durability);
    assertWindow(options.windowFromSeq);
    const prepared = prepareDrafts(drafts, this.#handle.scene);
    const { idempotencyKey } = options;
    const key =
      idempotencyKey === undefined
        ? null
        : { key: idempotencyKey, digest: createHash("sha256").update(draftsFingerprint(drafts)).digest() };
    const hasGivenIds = prepared.some(({ isIdGiven }) => isIdGiven);
    if (hasGivenIds) await this.#catchUp(ref);
    // Ids, a codec and an entry are what can refuse an append that has begun to write.
    const isCheckedFirst = !hasGivenIds && options.entry === undefined && !this.#handle.scene.rows.isCoded;
    return this.#handle.write((scene) => appendRecords(scene, { ref, prepared, options, key, durability }), {
      durability,
      signal: options.signal,
      isCheckedFirst,
    });
  }

  async *read<Payload extends core.ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncGenerator<core.RecordPage<Payload>> {
    const payload = options.payload ?? ("record" as Payload);
    for (let position = firstPosition(ref, options); position.session === null || position.left > 0;) {
      const { page, next } = await this.#handle.read(
        (connection) => readPage(this.#handle.scene, connection, position, payload),
        options.signal,
      );
      if (page === null) return;
      yield page;
      position = next;
    }
  }

  async load(ref: core.SessionRef, options: core.LoadOptions = {}): Promise<core.SessionState | null> {
    return this.#handle.read(({ statements }) => {
      const row = findSession(statements, ref);
      return row === undefined ? null : stateOf(this.#handle.scene.rows, row, storedEntry(statements, row));
    }, options.signal);
  }

  async save(ref: core.SessionRef, given: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    this.#handle.begin();
    const durability = this.#durability(options.durability);
    const entry = ownEntry(given);
    return this.#handle.write((scene) => saveEntry(scene, ref, entry, options.ifRevision), { durability });
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    return this.#handle.read((connection) => listSessions(this.#handle.scene, connection, query), query.signal);
  }

  async move(ref: core.SessionRef, action: core.MoveAction): Promise<core.SessionState> {
    return this.#handle.write((scene) => moveSession(scene, ref, action), { durability: "disk" });
  }

  async remove(ref: core.SessionRef, options: core.RemoveOptions = {}): Promise<void> {
    const isPurge = options.purge === true;
    await this.#handle.write((scene) => removeSession(scene, ref, isPurge), { durability: "disk" });
    if (isPurge) await this.#handle.scrub();
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<core.RedactResult> {
    await this.#catchUp(ref);
    const result = await this.#handle.write((scene) => redactSession(scene, ref, ids, options), { durability: "disk" });
    await this.#handle.scrub();
    return result;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #durability(asked: core.Durability | undefined): core.Durability {
    const given = writeDurability(this.capabilities, asked);
    return given === "none" ? "process" : given;
  }

  /** Enters the ids of a long session in slices of their own, so that the write that needs them is short. */
  async #catchUp(ref: core.SessionRef): Promise<void> {
    const isBehind = await this.#handle.read(({ statements }) => {
      const row = findSession(statements, ref);
      return row !== undefined && row.last_seq - row.ids_to_seq > catchUpRows;
    });
    let goesOn = isBehind;
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

function assertWindow(windowFromSeq: number | undefined): void {
  if (windowFromSeq === undefined || Number.isSafeInteger(windowFromSeq)) return;
  throw refused("INPUT_INVALID", "windowFromSeq is a whole number.", { windowFromSeq });
}
