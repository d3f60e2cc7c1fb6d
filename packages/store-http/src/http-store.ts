import type { LoadOptions, MoveAction, RedactResult, RemoveOptions } from "@throughline/core";
import type { ReadPayload, RecordWindow } from "@throughline/core/internal";
import { isDeepStrictEqual } from "node:util";
import type * as core from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import {
  assertBatchSize,
  assertIdsFree,
  assertMoveAction,
  assertNotArchived,
  assertRedaction,
  assertRef,
  beginningMs,
  createHandleLife,
  type HandleLife,
  planList,
  prepareAppend,
  writeDurability,
} from "@throughline/store-kit/internal";
import {
  assertIdempotencyKey,
  assertStoreOptions,
  givenEntry,
  linkRecords,
  sessionNotFound,
  withStored,
} from "@throughline/core/internal";
import { readPages } from "@throughline/store-kit";
import { sessionRequest, type Connection } from "./connection.ts";
import { createForkFacet, createPartialsFacet, createSearchFacet } from "./facets.ts";
import { createFilesFacet } from "./files-facet.ts";
import { createVectorsFacet } from "./vectors-facet.ts";
import { watchSession } from "./watch-session.ts";
import { appendBody, appendResultOf, assertMayExist, boundMs, isAddressable, recordOf, stateOf } from "./wire.ts";
import type { WireAppend, WireRecord, WireSession } from "./wire.ts";

export interface HttpStoreParts {
  readonly connection: Connection;
  readonly capabilities: core.StoreCapabilities;
  /** Limits the body of a request, in bytes, as the server states it. */
  readonly bodyBytes: number;
  readonly clock: core.Clock;
  readonly random: core.RandomSource;
  readonly ids: core.RecordIds;
  readonly onEvent: core.SessionEventListener | undefined;
}

interface WirePage {
  readonly items: readonly WireRecord[];
  readonly lastSeq: number;
  readonly sessionId: string;
}

interface WireWindow {
  readonly session: WireSession;
  readonly items: readonly WireRecord[];
  /** States the seq to read on from when the window does not fit into one answer; otherwise null. */
  readonly nextAfter: number | null;
}

interface WireList {
  readonly items: readonly WireSession[];
  readonly nextCursor: string | null;
  readonly findings: readonly core.Finding[];
  readonly purgedAtMs?: number | null;
}

interface WireSave extends WireSession {
  readonly began?: boolean;
  readonly replacedSessionId?: string | null;
}

/** Checks what needs no session before a request is sent; the server's store decides the rest. */
export class HttpStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly search?: core.SearchFacet;
  readonly watch?: core.WatchFacet;
  readonly fork?: core.ForkFacet;
  readonly partials?: core.PartialsFacet;
  readonly files?: core.FilesFacet;
  readonly vectors?: core.VectorsFacet;
  readonly #parts: HttpStoreParts;
  readonly #connection: Connection;
  readonly #life: HandleLife;
  readonly #told = new Set<string>();
  readonly #closing = new AbortController();

  constructor(parts: HttpStoreParts) {
    const { capabilities, connection, clock, random } = parts;
    this.#parts = parts;
    this.#connection = connection;
    this.capabilities = capabilities;
    this.#life = createHandleLife(parts.onEvent);
    const begin = (signal?: AbortSignal): void => this.#life.begin(signal);
    const write = <Result>(work: () => Promise<Result>): Promise<Result> => this.#write(work);
    const context = { connection, clock, random, begin, closing: this.#closing.signal };
    if (capabilities.search) this.search = createSearchFacet(connection, begin);
    if (capabilities.fork) this.fork = createForkFacet(connection, begin, write, (event) => this.#life.announce(event));
    if (capabilities.partials === true) this.partials = createPartialsFacet(connection, capabilities, write);
    if (capabilities.files === true) this.files = createFilesFacet({ connection, capabilities, life: this.#life });
    if (capabilities.vectors === true) this.vectors = createVectorsFacet(connection, this.#life);
    if (capabilities.watch) this.watch = { watch: (ref, options) => watchSession(context, ref, options) };
  }

  async append(
    ref: core.SessionRef,
    drafts: readonly core.AppendDraft[],
    options: core.AppendOptions = {},
  ): Promise<core.AppendResult> {
    assertStoreOptions("append", options);
    return this.#write(async () => {
      const { capabilities } = this;
      const { ids, clock, bodyBytes } = this.#parts;
      const { idempotencyKey, isNewKey, return: _given, ...unkeyed } = options;
      const { prepared, options: own } = prepareAppend(drafts, unkeyed, { capabilities, ids, clock });
      assertBatchSize(linkRecords(prepared, null), capabilities.limits);
      if (idempotencyKey !== undefined) assertIdempotencyKey(idempotencyKey);
      assertMayExist(ref);
      // Without a key a repeat could append twice. The store adds one, so every append can be repeated.
      const key =
        idempotencyKey === undefined ? { idempotencyKey: ids.next() } : { idempotencyKey, isNewKey: isNewKey === true };
      const text = appendBody(drafts, { ...own, ...key }, bodyBytes);
      const request = sessionRequest(ref, "/records", { method: "POST", text });
      const { signal } = options;
      const { body } = await this.#connection.write<WireAppend>(request, { signal });
      const result = appendResultOf(body);
      const { records, replayed } = result;
      if (records[0] !== undefined && !replayed)
        this.#life.announce({ name: "records-appended", ref, fromSeq: records[0].seq, toSeq: result.head.lastSeq });
      return withStored(this, ref, result, options);
    }, options.signal);
  }

  read<Payload extends ReadPayload = "record">(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload> = {},
  ): AsyncIterable<core.RecordPage<Payload>> {
    return this.#readOf(ref, options, undefined);
  }

  /** All pages are of the session that the first page found, wherever it lies by now. */
  #readOf<Payload extends ReadPayload>(
    ref: core.SessionRef,
    options: core.ReadOptions<Payload>,
    ofSession: string | undefined,
  ): AsyncIterable<core.RecordPage<Payload>> {
    assertStoreOptions("read", options);
    const { signal, payload = "record" as Payload } = options;
    let session = ofSession;
    return readPages(options, async ({ afterSeq, beforeSeq, order, left }) => {
      this.#life.begin(signal);
      assertMayExist(ref);
      const limit = Math.min(Math.max(left, 0), this.capabilities.limits.pageRecords);
      const before = beforeSeq === Infinity ? undefined : beforeSeq;
      const query = { after: afterSeq, before, order, limit, payload, session };
      const page = await this.#connection.read<WirePage>(sessionRequest(ref, "/records", { query }), signal);
      session = page.sessionId;
      return { records: page.items.map((item) => recordOf(item, payload)), lastSeq: page.lastSeq };
    });
  }

  async readWindow(
    ref: core.SessionRef,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<RecordWindow> {
    assertStoreOptions("readWindow", options);
    const { signal } = options;
    this.#life.begin(signal);
    assertMayExist(ref);
    const window = await this.#connection.read<WireWindow>(sessionRequest(ref, "/window"), signal);
    const state = stateOf(window.session);
    const records = window.items.map((item) => recordOf(item, "record"));
    if (window.nextAfter === null) return { state, records };
    const rest = { ...options, afterSeq: window.nextAfter, beforeSeq: state.head.lastSeq + 1 };
    for await (const page of this.#readOf<"record">(ref, rest, state.sessionId)) records.push(...page.records);
    return { state, records };
  }

  async load(ref: core.SessionRef, options: LoadOptions = {}): Promise<core.SessionState | null> {
    assertStoreOptions("load", options);
    const { signal } = options;
    this.#life.begin(signal);
    assertRef(ref);
    return this.#load(ref, signal);
  }

  async save(ref: core.SessionRef, given: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    assertStoreOptions("save", options);
    return this.#write(async () => {
      const { ifRevision, durability, createdAtMs } = options;
      writeDurability(this.capabilities, durability);
      assertRef(ref);
      const entry = givenEntry(given);
      beginningMs({ ...options, nowMs: 0 });
      const { sessionId, updatedAt } = entry;
      if (!isAddressable(ref)) assertIdsFree({ ref, sessionId }, { agentId: undefined, sessionId: undefined });
      const headers = ifRevision === null ? { "if-none-match": "*" } : { "if-match": `"${ifRevision}"` };
      const query = { durability, createdAtMs };
      const request = sessionRequest(ref, "/entry", { method: "PUT", headers, query, body: entry });
      const { body } = await this.#connection.write<WireSave>(request, {
        // The next revision with an equal entry means that the earlier attempt was applied and its answer was lost.
        findApplied: async () => {
          const state = await this.#loadWire(ref, undefined);
          const isOurs = state?.revision === (ifRevision ?? 0) + 1 && isDeepStrictEqual(state.entry, entry);
          return isOurs ? { ...state, began: ifRevision === null } : null;
        },
      });
      const state = stateOf(body);
      const { replacedSessionId: old = null, began = false } = body;
      if (old !== null)
        this.#life.announce({ name: "session-archived", ref: { ...ref, archiveId: old }, sessionId: old });
      if (began) this.#life.announce({ name: "session-created", ref, sessionId });
      const storedMs = state.updatedAtMs;
      if (typeof updatedAt === "number" && Math.trunc(updatedAt) > storedMs)
        this.#life.announce({ name: "updated-at-clamped", ref, claimedMs: updatedAt, storedMs });
      return state;
    });
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    assertStoreOptions("list", query);
    const { signal, namespace = "", agentId, keyPrefix, sinceMs, untilMs, importedFrom, ...filters } = query;
    this.#life.begin(signal);
    const { cursor: _sealed, ...checked } = query;
    planList(checked);
    const times = { sinceMs: boundMs(sinceMs), untilMs: boundMs(untilMs) };
    const source = { importedFormat: importedFrom?.format, importedId: importedFrom?.sourceId };
    const asked = { ...filters, ...times, ...source, agent: agentId, prefix: keyPrefix, entry: true };
    const request = { path: "/sessions", namespace, query: asked };
    const { items, nextCursor, findings, purgedAtMs } = await this.#connection.read<WireList>(request, signal);
    for (const finding of findings) {
      const identity = JSON.stringify(finding);
      if (!this.#told.has(identity)) this.#life.announce({ name: "finding", ref: null, finding });
      this.#told.add(identity);
    }
    return { sessions: items.map(stateOf), nextCursor, ...(purgedAtMs === undefined ? {} : { purgedAtMs }) };
  }

  async move(ref: core.SessionRef, action: MoveAction): Promise<core.SessionState> {
    return this.#write(async () => {
      assertRef(ref);
      assertMoveAction(action);
      const { sessionId } = await this.#existing(ref);
      if (action.kind === "archive") {
        assertNotArchived(ref);
        return this.#archive(ref, sessionId);
      }
      const key = action.kind === "rename" ? { key: action.key } : {};
      const body = { ...key, sessionId };
      const request = sessionRequest(ref, `/${action.kind}`, { method: "POST", body, query: { entry: true } });
      return stateOf((await this.#connection.write<WireSession>(request)).body);
    });
  }

  async remove(ref: core.SessionRef, options: RemoveOptions = {}): Promise<void> {
    assertStoreOptions("remove", options);
    return this.#write(async () => {
      const { purge = false } = options;
      assertRef(ref);
      const { sessionId } = await this.#existing(ref);
      if (!purge) return void (await this.#archive(ref, sessionId));
      const request = sessionRequest(ref, "", { method: "DELETE", query: { purge, session: sessionId, force: true } });
      await this.#connection.write(request);
      this.#life.announce({ name: "session-removed", ref, sessionId });
    });
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<RedactResult> {
    return this.#write(async () => {
      assertRedaction(ids, options);
      assertMayExist(ref);
      const body = { ids, ...options };
      const request = sessionRequest(ref, "/redact", { method: "POST", body });
      const { seqs } = (await this.#connection.write<RedactResult>(request)).body;
      this.#life.announce({ name: "records-redacted", ref, seqs });
      return { seqs };
    });
  }

  close(): Promise<void> {
    return this.#life.close(
      () => Promise.resolve(),
      () => this.#closing.abort(),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Registers the operation, so that `close` waits for it. */
  async #write<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    this.#life.begin(signal);
    return this.#life.track(work);
  }

  async #loadWire(ref: core.SessionRef, signal: AbortSignal | undefined): Promise<WireSession | null> {
    if (!isAddressable(ref)) return null;
    try {
      return await this.#connection.read<WireSession>(sessionRequest(ref, "", { query: { entry: true } }), signal);
    } catch (error) {
      if (hasErrorCode(error, "SESSION_NOT_FOUND")) return null;
      throw error;
    }
  }

  async #load(ref: core.SessionRef, signal: AbortSignal | undefined): Promise<core.SessionState | null> {
    const session = await this.#loadWire(ref, signal);
    return session === null ? null : stateOf(session);
  }

  /**
   * Resolves the session before a move or removal. The request names its id, so a repeat finds it at its new address.
   */
  async #existing(ref: core.SessionRef): Promise<core.SessionState> {
    const state = await this.#load(ref, undefined);
    if (state === null) throw sessionNotFound(ref);
    return state;
  }

  async #archive(ref: core.SessionRef, sessionId: string): Promise<core.SessionState> {
    const query = { session: sessionId, entry: true, force: true };
    const request = sessionRequest(ref, "", { method: "DELETE", query });
    const state = stateOf((await this.#connection.write<WireSession>(request)).body);
    if (ref.archiveId === undefined) this.#life.announce({ name: "session-archived", ref: state.ref, sessionId });
    return state;
  }
}
