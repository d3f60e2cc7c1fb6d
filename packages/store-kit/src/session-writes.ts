import type {
  AppendOptions,
  AppendResult,
  MoveAction,
  PartialReply,
  RedactOptions,
  RedactResult,
  RemoveOptions,
  SaveOptions,
  SessionEntry,
  SessionRecord,
  SessionRef,
  SessionState,
} from "@throughline/core";
import { earlierResult, entrySourceDigest, fileIdsOf, sessionNotFound } from "@throughline/core/internal";
import { type Awaitable, chain, isPending } from "./awaitable.ts";
import type { BackendSessions, PlannedWrite } from "./backend-sessions.ts";
import { appendField, keptAppend, planRemembered } from "./keyed-appends.ts";
import { planClaims, planPlace, planPurge } from "./namespace-fields.ts";
import { assertPartialFits, isPartialOf } from "./partial-reply.ts";
import { type AppendPlan, type AppendRequest, type AppendTarget, planAppend } from "./plan-append.ts";
import { assertMoveAction, planMove, planRedaction, planRemove } from "./plan-move.ts";
import { planSave } from "./plan-save.ts";
import type { SessionCoder } from "./session-coder.ts";
import { planFieldRemoval, type SessionFrame } from "./session-frame.ts";
import type { FieldWrites, KeptSession, KeptRecord, SessionChange, SessionRow } from "./store-backend.ts";

/** This field of a session holds its open reply. */
const partialField = "partial";

const noPartial: FieldWrites = [[partialField, null]];

function changeOf(
  before: SessionRow | null,
  after: SessionRow | null,
  rest: Partial<SessionChange> = {},
): SessionChange {
  return { append: [], replace: [], fields: [], ...rest, before, after };
}

function at(row: SessionRow): { readonly ref: SessionRef; readonly version: string } {
  return { ref: row.ref, version: row.version };
}

function messagesIn(rows: readonly KeptRecord[]): number {
  return rows.reduce((count, { type }) => (type === "message" ? count + 1 : count), 0);
}

function bytesOf(rows: readonly KeptRecord[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Lists the files of a record in its row, where the backend finds them also under a codec. */
function withFiles(row: KeptRecord, record: SessionRecord): KeptRecord {
  const files = fileIdsOf(record);
  // Nearly every record has none, and then the row is not copied.
  return files.length === 0 ? row : { ...row, files };
}

const none: readonly never[] = [];

/** Holds an append with the time of its attempt. */
interface PreparedAppend {
  readonly request: AppendRequest;
  readonly options: AppendOptions;
  readonly nowMs: number;
}

/** Holds what the session knows of an append: the seqs of the ids, and the earlier append with its key. */
interface KnownOfAppend {
  readonly ids: readonly string[];
  readonly seqs: readonly (number | null)[];
  readonly kept: string | null | undefined;
}

/** Plans the commits of a store's writes, each from the session as it was read. */
export class SessionWrites {
  readonly #sessions: BackendSessions;
  readonly #coder: SessionCoder;

  constructor(sessions: BackendSessions, coder: SessionCoder) {
    this.#sessions = sessions;
    this.#coder = coder;
  }

  /** Returns the row that follows a row, with the fields of a plan. */
  #next(row: SessionRow, changed: Partial<SessionRow>): SessionRow {
    return { ...row, ...changed, version: this.#sessions.newVersion() };
  }

  /** Plans an append. It reads only what the drafts and the key make necessary. */
  append(
    found: KeptSession,
    request: AppendRequest,
    options: AppendOptions,
    nowMs: number,
  ): Awaitable<PlannedWrite<AppendResult>> {
    const { keyed, prepared } = request;
    // Ids of `RecordIds` are new, and so is the key of a first attempt.
    const ids = prepared.some(({ isIdGiven }) => isIdGiven) ? prepared.map(({ id }) => id) : none;
    const names = keyed !== null && options.isNewKey !== true ? [appendField(keyed.key)] : none;
    const { row } = found;
    // Both are asked for at once, so that they share a round trip.
    const seqs = this.#sessions.seqsOf(row, ids);
    const values = this.#sessions.sessionFields(row, names);
    const append = { request, options, nowMs };
    if (!isPending(seqs) && !isPending(values)) return this.#planned(found, append, { ids, seqs, kept: values[0] });
    return chain(seqs, (known) => chain(values, ([kept]) => this.#planned(found, append, { ids, seqs: known, kept })));
  }

  #planned(
    found: KeptSession,
    append: PreparedAppend,
    { ids, seqs, kept = null }: KnownOfAppend,
  ): Awaitable<PlannedWrite<AppendResult>> {
    const { row } = found;
    const target: AppendTarget = {
      frame: row,
      entry: () => this.#coder.entry(found),
      holdsId: (id) => (seqs[ids.indexOf(id)] ?? null) !== null,
      findKeyed: (key, digest) => earlierResult(key, digest, keptAppend(kept), row.appends.horizonMs),
    };
    const plan = planAppend(append.request, target, append.nowMs);
    const { result, events } = plan;
    return result.replayed ? { change: null, result, events } : this.#appended(row, plan, append);
  }

  #appended(row: SessionRow, plan: AppendPlan, append: PreparedAppend): Awaitable<PlannedWrite<AppendResult>> {
    const { keyed } = append.request;
    if (keyed === null) return this.#written(row, plan, append, { appends: row.appends, fields: none });
    const read = (names: readonly string[]): Awaitable<readonly (string | null)[]> =>
      this.#sessions.sessionFields(row, names);
    const remembered = planRemembered(row.appends, { ...keyed, result: plan.result }, append.nowMs, read);
    return chain(remembered, (one) => this.#written(row, plan, append, one));
  }

  #written(
    row: SessionRow,
    plan: AppendPlan,
    { request: { durability }, options, nowMs }: PreparedAppend,
    { appends, fields }: Pick<SessionRow, "appends"> & Pick<SessionChange, "fields">,
  ): PlannedWrite<AppendResult> {
    const { result, linked, entry, events } = plan;
    const { ref, sessionId, revision, head, createdAtMs, updatedAtMs } = plan.frame;
    const { lastSeq } = row.head;
    const place = { ref, sessionId };
    const append = linked.map((item, index) =>
      withFiles(this.#coder.encode(place, item, { seq: lastSeq + index + 1, storedAtMs: nowMs }), item.record),
    );
    // The fields are named one by one for speed, because this is the path of every append.
    const after: SessionRow = {
      id: row.id,
      version: this.#sessions.newVersion(),
      ref,
      sessionId,
      revision,
      head,
      createdAtMs,
      updatedAtMs,
      messageCount: row.messageCount + messagesIn(append),
      recordBytes: row.recordBytes + bytesOf(append),
      sourceDigest: entry === null ? row.sourceDigest : entrySourceDigest(entry),
      appends,
    };
    const written: SessionChange = { before: row, after, append, replace: none, fields };
    const session = entry === null ? written : { ...written, entry: this.#coder.entryText(row, entry) };
    const change = { expect: [at(row)], sessions: [session], durability };
    if (options.return === undefined) return { change, result, events };
    const stored = append.map((one) => this.#coder.decode(place, one, "record"));
    return { change, result: { ...result, stored }, events };
  }

  /** Plans a save: the next revision of the entry, a new session, or a reset. */
  async save(
    found: KeptSession | null,
    ref: SessionRef,
    given: SessionEntry,
    options: SaveOptions & { readonly nowMs: number },
  ): Promise<PlannedWrite<SessionState>> {
    const current = found?.row ?? null;
    const plan = planSave(current, ref, given, options);
    const { frame, events } = plan;
    const entry = this.#coder.entryText(frame, plan.entry);
    const sourceDigest = entrySourceDigest(plan.entry);
    const durability = options.durability === undefined ? {} : { durability: options.durability };
    if (current !== null && !plan.isNew) {
      const after = this.#next(current, { ...frame, sourceDigest });
      const change = { expect: [at(current)], sessions: [changeOf(current, after, { entry })], ...durability };
      return { change, result: this.#coder.state({ row: after, entry }), events };
    }
    const claims = await planClaims(frame, this.#sessions.fieldsOf(ref.namespace));
    const after = this.#begun(frame, sourceDigest);
    const sessions = [changeOf(null, after, { entry })];
    const expect = [{ ref: frame.ref, version: current?.version ?? null }];
    let { fields } = claims;
    if (current !== null && plan.archived !== null) {
      const archived = this.#next(current, { ref: plan.archived.ref });
      expect.push({ ref: archived.ref, version: null });
      sessions.unshift(changeOf(current, archived, { fields: noPartial }));
      fields = [...fields, ...planPlace(archived)];
    }
    const change = { expect, expectFields: claims.expectFields, fields, sessions, ...durability };
    return { change, result: this.#coder.state({ row: after, entry }), events };
  }

  #begun(frame: SessionFrame, sourceDigest: string | null): SessionRow {
    const version = this.#sessions.newVersion();
    const appends = { first: 1, next: 1, horizonMs: -1 };
    return { ...frame, id: version, version, messageCount: 0, recordBytes: 0, sourceDigest, appends };
  }

  /** Plans a rename, an archive or a restore. */
  async move(found: KeptSession, action: MoveAction): Promise<PlannedWrite<SessionState>> {
    const { row } = found;
    assertMoveAction(action);
    const { namespace, agentId } = row.ref;
    const key = action.kind === "rename" ? action.key : row.ref.key;
    const isKeyTaken = action.kind !== "archive" && typeof key === "string";
    const holder = isKeyTaken ? await this.#sessions.find({ namespace, agentId, key }) : null;
    const { frame, events } = planMove(row, action, () => holder?.row.sessionId);
    return this.#moved(found, frame, events);
  }

  #moved(
    found: KeptSession,
    { ref }: SessionFrame,
    events: PlannedWrite<unknown>["events"],
  ): PlannedWrite<SessionState> {
    const { row } = found;
    const after = this.#next(row, { ref });
    // A codec binds the entry to the key.
    const entry = ref.key === row.ref.key ? found.entry : this.#coder.entryText(after, this.#coder.entry(found));
    const isElsewhere = ref.key !== row.ref.key || ref.archiveId !== row.ref.archiveId;
    const expect = [at(row), ...(isElsewhere ? [{ ref, version: null }] : [])];
    const fields = ref.archiveId === undefined ? [] : noPartial;
    const sessions = [changeOf(row, after, { entry, fields })];
    const change = { expect, fields: planPlace(after), sessions };
    return { change, result: this.#coder.state({ row: after, entry }), events };
  }

  /** Plans to archive or to purge a session. */
  async remove(found: KeptSession, options: RemoveOptions, nowMs: number): Promise<PlannedWrite<void>> {
    const { row } = found;
    const { frame, events } = planRemove(row, options);
    if (frame === null) {
      const purge = await planPurge(row, nowMs, this.#sessions.fieldsOf(row.ref.namespace));
      return { change: { expect: [at(row)], ...purge, sessions: [changeOf(row, null)] }, result: undefined, events };
    }
    if (row.ref.archiveId !== undefined) return { change: null, result: undefined, events };
    const { change } = this.#moved(found, frame, events);
    return { change, result: undefined, events };
  }

  /** Plans to replace records by tombstones, and to remove fields of the entry. */
  async redact(
    found: KeptSession,
    ids: readonly string[],
    { reason, entryFields = [], texts }: RedactOptions,
    nowMs: number,
  ): Promise<PlannedWrite<RedactResult>> {
    const { row } = found;
    const known = await this.#sessions.seqsOf(row, ids);
    const seqById = new Map(ids.map((id, index) => [id, known[index] ?? undefined]));
    const { seqs, events } = planRedaction(row, ids, (id) => seqById.get(id));
    const rows = await this.#rowsAt(row, seqs);
    const replaced = rows.flatMap((old) => {
      const redacted = this.#coder.redact(row, old, { reason, redactedAtMs: nowMs, texts });
      if (redacted === null) return [];
      if (old.files === undefined) return [{ old, redacted }];
      return [{ old, redacted: withFiles(redacted, this.#coder.decode(row, redacted, "record").record) }];
    });
    const old = replaced.map((one) => one.old);
    const replace = replaced.map(({ redacted }) => redacted);
    const plan = entryFields.length === 0 ? null : planFieldRemoval(row, this.#coder.entry(found), entryFields, nowMs);
    const after = this.#next(row, {
      ...plan?.frame,
      messageCount: row.messageCount + messagesIn(replace) - messagesIn(old),
      recordBytes: row.recordBytes + bytesOf(replace) - bytesOf(old),
      sourceDigest: plan === null ? row.sourceDigest : entrySourceDigest(plan.entry),
    });
    const entry = plan === null ? {} : { entry: this.#coder.entryText(after, plan.entry) };
    const sessions = [changeOf(row, after, { ...entry, replace, fields: noPartial })];
    const allEvents = [...events, ...(plan?.events ?? [])];
    return { change: { expect: [at(row)], sessions }, result: { seqs }, events: allEvents };
  }

  /** Reads records by seqs in ascending order, neighbors together. */
  async #rowsAt(row: SessionRow, seqs: readonly number[]): Promise<readonly KeptRecord[]> {
    const rows: KeptRecord[] = [];
    for (let from = 0; from < seqs.length;) {
      let end = from;
      while (end - from < 100 && seqs[end + 1] === (seqs[end] as number) + 1) end++;
      rows.push(...(await this.#sessions.records(row, seqs[from] as number, seqs[end] as number)));
      from = end + 1;
    }
    return rows;
  }

  /** Plans to replace the open reply. */
  writePartial(
    { row }: KeptSession,
    { partial, text }: { readonly partial: PartialReply; readonly text: string },
  ): PlannedWrite<void> {
    assertPartialFits(row.ref, row.head, partial);
    const { fence, turnId } = partial;
    const kept = JSON.stringify([fence, turnId, this.#coder.partialText(row, turnId, text)]);
    return this.#partialWritten(row, kept);
  }

  #partialWritten(row: SessionRow, text: string | null): PlannedWrite<void> {
    const sessions = [changeOf(row, this.#next(row, {}), { fields: [[partialField, text]] })];
    return { change: { expect: [at(row)], sessions }, result: undefined, events: [] };
  }

  /** Plans to remove the open reply of this turn or of an earlier one. */
  async removePartial(found: KeptSession | null, fence: number): Promise<PlannedWrite<void>> {
    const kept = found === null ? null : await this.#keptPartial(found.row);
    if (found === null || kept === null || kept.fence > fence) return { change: null, result: undefined, events: [] };
    return this.#partialWritten(found.row, null);
  }

  /** Returns the JSON of the open reply of the open turn, or null. */
  async partial(ref: SessionRef): Promise<string | null> {
    const found = await this.#sessions.find(ref);
    if (found === null) throw sessionNotFound(ref);
    const { row } = found;
    const kept = await this.#keptPartial(row);
    if (kept === null || !isPartialOf(row.head, { ...kept, sessionId: row.sessionId })) return null;
    return this.#coder.partial(row, kept.turnId, kept.text);
  }

  async #keptPartial(
    row: SessionRow,
  ): Promise<{ readonly fence: number; readonly turnId: string; readonly text: string } | null> {
    const [kept = null] = await this.#sessions.sessionFields(row, [partialField]);
    if (kept === null) return null;
    const [fence, turnId, text] = JSON.parse(kept) as readonly [number, string, string];
    return { fence, turnId, text };
  }
}
