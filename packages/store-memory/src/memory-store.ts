import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { sessionRef, throughlineKind, ThroughlineError, type ErrorCode } from "@throughline/core";
import type * as core from "@throughline/core";
import { systemClock, systemRecordIds } from "@throughline/core/node";
import { RememberedAppends, assertBatchSize, createPayloadCoder, defaultIdempotency, defaultStoreLimits, draftsFingerprint, headAfterAppend, lineBytes, linkRecords, listPage, nextUpdatedAtMs, ownEntry, patchEntry, prepareDrafts, quote, redactionTombstone, serializeRecord, sessionNotFound, sessionRefText, writeDurability } from "@throughline/core/store";
import type { LinkedRecord, PayloadCoder } from "@throughline/core/store";
import { claimIds, createMemoryData, placeSession, type MemoryData, type MemoryRow, type MemorySession } from "./memory-data.ts";

export interface MemoryStoreOptions {
  /** @default the system's clock */
  readonly clock?: core.Clock;
  /** @default ids of this process */
  readonly ids?: core.RecordIds;
  readonly onEvent?: core.SessionEventListener;
  /** @default payloads are kept as they are */
  readonly codec?: core.PayloadCodec;
  /** @default core's `defaultStoreLimits` */
  readonly limits?: Partial<core.StoreLimits>;
  /** Given: the sessions outlive the handle, and stores over the same data share them. @default data of its own */
  readonly data?: MemoryData;
}

/** A store in memory: the contract at its shortest. What it keeps ends with the process. */
export function createMemoryStore(options: MemoryStoreOptions = {}): core.SessionStore {
  return new MemoryStore(options);
}

class MemoryStore implements core.SessionStore {
  readonly capabilities: core.StoreCapabilities;
  readonly #options: MemoryStoreOptions;
  readonly #data: MemoryData;
  readonly #clock: core.Clock;
  readonly #coder: PayloadCoder;
  #isClosed = false;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    this.#data = options.data ?? createMemoryData();
    this.#clock = options.clock ?? systemClock;
    this.#coder = createPayloadCoder(options.codec);
    this.capabilities = Object.freeze<core.StoreCapabilities>({
      specification: 1, name: "memory", writers: "one-handle", persistent: options.data !== undefined,
      durabilities: Object.freeze(["none"] as const), defaultDurability: "none",
      search: false, watch: false, fork: false, maintenance: false,
      limits: Object.freeze({ ...defaultStoreLimits, ...options.limits }),
      idempotency: defaultIdempotency,
    });
  }

  async append(ref: core.SessionRef, drafts: readonly core.AppendDraft[], options: core.AppendOptions = {}): Promise<core.AppendResult> {
    this.#begin(options.signal);
    const session = this.#writable(ref);
    const durability = writeDurability(this.capabilities, options.durability);
    const { limits } = this.capabilities;
    const prepared = prepareDrafts(drafts, { ids: this.#options.ids ?? systemRecordIds, clock: this.#clock, limits });
    const linked = linkRecords(prepared, session.head.headId);
    assertBatchSize(linked, limits);
    const key = options.idempotencyKey;
    const digest = key === undefined ? "" : createHash("sha256").update(draftsFingerprint(drafts)).digest("hex");
    const earlier = key === undefined ? null : session.remembered.find(key, digest);
    if (earlier !== null) return earlier;
    const nowMs = this.#clock.nowMs();
    const head = headAfterAppend(session.head, linked, options, nowMs);
    const taken = linked.find(({ record }) => session.ids.has(record.id))?.record.id;
    if (taken !== undefined) throw refused("RECORD_ID_TAKEN", `The session holds a record ${quote(taken)}.`, { id: taken });
    const rows = linked.map((item, index) => this.#row(session, item, session.rows.length + index + 1, nowMs));
    if (options.entry !== undefined) this.#writeEntry(session, patchEntry(this.#entry(session), options.entry));
    // What could fail has not: all of it becomes visible in this one synchronous section.
    session.rows.push(...rows);
    for (const { id } of rows) session.ids.add(id);
    session.head = head;
    if (rows.length > 0 && options.entry?.["updatedAt"] === undefined) session.updatedAtMs = Math.max(session.updatedAtMs, nowMs);
    const records = rows.map(({ seq, id, parentId, side, tsMs }) => ({ seq, id, parentId, side, tsMs, storedAtMs: nowMs }));
    const result = { records, head: structuredClone(head), revision: session.revision, durability, replayed: false };
    if (key !== undefined) session.remembered.remember(key, digest, result, nowMs);
    const fromSeq = rows[0]?.seq;
    if (fromSeq !== undefined) this.#emit({ name: "records-appended", ref: session.ref, fromSeq, toSeq: head.lastSeq });
    return result;
  }

  async *read<Payload extends core.ReadPayload = "record">(ref: core.SessionRef, options: core.ReadOptions<Payload> = {}): AsyncGenerator<core.RecordPage<Payload>> {
    const { afterSeq = 0, beforeSeq = Infinity, order = "ascending", limit = Infinity, payload = "record" } = options;
    const { pageRecords, pageBytes } = this.capabilities.limits;
    this.#begin(options.signal);
    const session = this.#found(ref);
    const step = order === "ascending" ? 1 : -1;
    let seq = step === 1 ? afterSeq + 1 : Math.min(session.rows.length, beforeSeq - 1);
    for (let left = limit; left > 0; this.#begin(options.signal)) {
      const records: core.RecordFor<Payload>[] = [];
      for (let bytes = 0; left > 0 && records.length < pageRecords && bytes < pageBytes; seq += step, left--) {
        const row = seq > afterSeq && seq < beforeSeq ? session.rows[seq - 1] : undefined;
        if (row === undefined) break;
        bytes += row.bytes;
        records.push(this.#record(session, row, payload) as core.RecordFor<Payload>);
      }
      if (records.length === 0) return;
      yield { records, lastSeq: session.head.lastSeq };
    }
  }

  async load(ref: core.SessionRef, options: core.LoadOptions = {}): Promise<core.SessionState | null> {
    this.#begin(options.signal);
    const session = this.#data.sessions.get(sessionRefText(ref));
    return session === undefined ? null : this.#state(session);
  }

  async save(ref: core.SessionRef, given: core.SessionEntry, options: core.SaveOptions): Promise<core.SessionState> {
    this.#begin();
    writeDurability(this.capabilities, options.durability);
    const entry = ownEntry(given);
    const current = ref.archiveId === undefined ? this.#data.sessions.get(sessionRefText(ref)) : this.#writable(ref);
    const revision = current?.revision ?? null;
    if (revision !== options.ifRevision) throw refused("REVISION_CONFLICT", `The entry is at revision ${revision}.`, { revision });
    if (current?.sessionId === entry.sessionId) {
      this.#writeEntry(current, entry);
      return this.#state(current);
    }
    const created = this.#newSession(ref, entry, revision ?? 0);
    claimIds(this.#data, created.ref, created.sessionId);
    if (current !== undefined) this.#archive(current);
    placeSession(this.#data, created, created.ref);
    this.#emit({ name: "session-created", ref: created.ref, sessionId: created.sessionId });
    return this.#state(created);
  }

  async list(query: core.ListQuery = {}): Promise<core.SessionPage> {
    this.#begin(query.signal);
    const { sessions, nextCursor } = listPage(this.#data.sessions.values(), query);
    return { sessions: sessions.map((session) => this.#state(session)), nextCursor };
  }

  async move(ref: core.SessionRef, action: core.MoveAction): Promise<core.SessionState> {
    this.#begin();
    const session = action.kind === "restore" ? this.#found(ref) : this.#writable(ref);
    if (action.kind === "archive") this.#archive(session);
    else {
      const { namespace, agentId, key } = session.ref;
      const owner = { namespace, agentId };
      const target = action.kind === "rename" ? sessionRef({ ...owner, key: action.key }) : { ...owner, key };
      const holder = this.#data.sessions.get(sessionRefText(target));
      if (holder !== undefined && (holder !== session || action.kind === "restore")) throw refused("SESSION_EXISTS", `A session holds the key ${quote(target.key)}.`, { ...target });
      const entry = JSON.stringify(this.#entry(session));
      session.entry = this.#coder.encode(entry, { ref: target, sessionId: session.sessionId, id: target.key, part: "entry" });
      placeSession(this.#data, session, target);
    }
    return this.#state(session);
  }

  async remove(ref: core.SessionRef, options: core.RemoveOptions = {}): Promise<void> {
    this.#begin();
    const session = this.#found(ref);
    if (options.purge !== true) return this.#archive(session);
    placeSession(this.#data, session, null);
    session.rows.length = 0;
    this.#emit({ name: "session-removed", ref: session.ref, sessionId: session.sessionId });
  }

  async redact(ref: core.SessionRef, ids: readonly string[], options: core.RedactOptions): Promise<core.RedactResult> {
    this.#begin();
    const session = this.#found(ref);
    const unknown = ids.find((id) => !session.ids.has(id));
    if (unknown !== undefined) throw refused("RECORD_NOT_FOUND", `The session holds no record ${quote(unknown)}.`, { id: unknown });
    const info = { reason: options.reason, redactedAtMs: this.#clock.nowMs() };
    const rows = session.rows.filter(({ id }) => ids.includes(id)).map((row) => {
      const { record } = this.#record(session, row, "record") as core.StoredRecord;
      if (throughlineKind(record) === "redaction") return row;
      const tombstone = redactionTombstone(record, { ...info, side: row.side, bytes: row.bytes });
      const linked = { record: tombstone, text: serializeRecord(tombstone), source: null, isSourceCanonical: false };
      return this.#row(session, { ...linked, side: row.side, tsMs: row.tsMs }, row.seq, row.storedAtMs);
    });
    for (const row of rows) session.rows[row.seq - 1] = row;
    const seqs = rows.map(({ seq }) => seq);
    this.#emit({ name: "records-redacted", ref: session.ref, seqs });
    return { seqs };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #begin(signal?: AbortSignal): void {
    if (this.#isClosed) throw refused("STORE_CLOSED", "The store handle was closed.", {});
    if (signal?.aborted === true) throw refused("ABORTED", "The signal was aborted before the operation began.", {}, signal.reason);
  }

  #found(ref: core.SessionRef): MemorySession {
    const session = this.#data.sessions.get(sessionRefText(ref));
    if (session === undefined) throw sessionNotFound(ref);
    return session;
  }

  #writable(ref: core.SessionRef): MemorySession {
    const session = this.#found(ref);
    if (session.ref.archiveId !== undefined) throw refused("SESSION_ARCHIVED", "The session is archived and takes no writes.", { ...ref });
    return session;
  }

  #row(session: MemorySession, item: LinkedRecord, seq: number, storedAtMs: number | null): MemoryRow {
    const { record, text: plain, side, tsMs, source } = item;
    const { id, parentId, type } = record;
    const owner = { ref: session.ref, sessionId: session.sessionId, id };
    const text = this.#coder.encode(plain, { ...owner, part: "record" });
    const coded = source === null || source === plain ? null : this.#coder.encode(source, { ...owner, part: "source" });
    return { seq, id, parentId, type, side, tsMs, storedAtMs, bytes: lineBytes(item), crc: crc32(text), text, source: coded, isSourceText: typeof source === "string" };
  }

  #record(session: MemorySession, row: MemoryRow, payload: core.ReadPayload): core.RecordHead | core.StoredRecord | core.SourcedRecord {
    const { text, source, isSourceText, ...head } = row;
    if (payload === "head") return head;
    const owner = { ref: session.ref, sessionId: session.sessionId, id: row.id };
    const line = textOf(this.#coder.decode(text, { ...owner, part: "record" }));
    const stored = { ...head, record: JSON.parse(line) as core.SessionRecord };
    if (payload === "record") return stored;
    const bytes = source === null ? null : this.#coder.decode(source, { ...owner, part: "source" });
    return { ...stored, source: bytes === null ? line : isSourceText ? textOf(bytes) : bytes, isSourceCanonical: bytes === null };
  }

  #state({ ref, sessionId, revision, head, rows, createdAtMs, updatedAtMs, ...session }: MemorySession): core.SessionState {
    const messageCount = rows.filter(({ type }) => type === "message").length;
    const entry = this.#entry({ ref, sessionId, entry: session.entry });
    return { ref: { ...ref }, sessionId, archived: ref.archiveId !== undefined, entry, revision, head: structuredClone(head), messageCount, createdAtMs, updatedAtMs };
  }

  #entry({ ref, sessionId, entry }: Pick<MemorySession, "ref" | "sessionId" | "entry">): core.SessionEntry {
    return JSON.parse(textOf(this.#coder.decode(entry, { ref, sessionId, id: ref.key, part: "entry" }))) as core.SessionEntry;
  }

  /** Fails before it changes anything. */
  #writeEntry(session: MemorySession, entry: core.SessionEntry): void {
    const { ref, sessionId } = session;
    if (entry.sessionId !== sessionId) throw refused("INPUT_INVALID", "An append cannot change the sessionId of the entry.", { sessionId });
    const { updatedAtMs, wasClamped } = nextUpdatedAtMs(session.updatedAtMs, entry.updatedAt, this.#clock.nowMs());
    const kept = wasClamped ? patchEntry(entry, { updatedAt: updatedAtMs }) : entry;
    session.entry = this.#coder.encode(JSON.stringify(kept), { ref, sessionId, id: ref.key, part: "entry" });
    session.updatedAtMs = updatedAtMs;
    session.revision++;
    if (wasClamped) this.#emit({ name: "updated-at-clamped", ref, claimedMs: Number(entry.updatedAt), storedMs: updatedAtMs });
  }

  #newSession({ namespace, agentId, key }: core.SessionRef, entry: core.SessionEntry, revision: number): MemorySession {
    const createdAtMs = this.#clock.nowMs();
    const { sessionId } = entry;
    const session: MemorySession = {
      ref: { namespace, agentId, key }, sessionId, entry: new Uint8Array(), revision, rows: [], ids: new Set(), remembered: new RememberedAppends(),
      head: { sessionId, lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null },
      createdAtMs, updatedAtMs: typeof entry.updatedAt === "number" ? 0 : createdAtMs,
    };
    this.#writeEntry(session, entry);
    return session;
  }

  #archive(session: MemorySession): void {
    if (session.ref.archiveId !== undefined) return;
    placeSession(this.#data, session, { ...session.ref, archiveId: session.sessionId });
    this.#emit({ name: "session-archived", ref: session.ref, sessionId: session.sessionId });
  }

  #emit(event: core.SessionEvent): void {
    try {
      this.#options.onEvent?.(event);
    } catch {
      // A listener watches; what it throws is its own affair and must not undo or fail the operation.
    }
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

function refused(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>>, cause?: unknown): ThroughlineError {
  return new ThroughlineError(code, message, { outcome: "not-applied", details, cause });
}
