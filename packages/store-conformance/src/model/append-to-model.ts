import { isSideRecord, type SourcedDraft } from "@throughline/core/internal";
import type {
  AppendDraft,
  AppendOptions,
  RecordDraft,
  SessionRecord,
  SessionRef,
  TurnRequest,
} from "@throughline/core";
import {
  findSession,
  foundSession,
  headOf,
  ModelRefusal,
  noteHead,
  plainJson,
  replaceEntry,
  withFields,
  type ModelAppendAnswer,
  type ModelRecord,
  type ModelSession,
  type SessionModel,
} from "./session-model.ts";

/**
 * Applies an append to the model. `madeIds` are the ids that the store created for drafts without one. The store
 * chooses them freely, but they must be new.
 * @throws {ModelRefusal} in the order of the contract
 */
export function appendToModel(
  model: SessionModel,
  ref: SessionRef,
  drafts: readonly AppendDraft[],
  options: Omit<AppendOptions, "signal" | "durability">,
  madeIds: readonly string[] = [],
): ModelAppendAnswer {
  const read = drafts.map((draft) => readDraft(draft, model.nowMs));
  const given = read.flatMap(({ fields }) => (fields.id === undefined ? [] : [fields.id]));
  if (new Set(given).size < given.length) throw new ModelRefusal("RECORD_ID_TAKEN");
  const session = foundSession(model, ref);
  if (ref.archiveId !== undefined) throw new ModelRefusal("SESSION_ARCHIVED");
  const earlier = options.idempotencyKey === undefined ? undefined : session.keyed.get(options.idempotencyKey);
  if (earlier !== undefined) {
    if (draftsText(earlier.drafts) !== draftsText(drafts)) throw new ModelRefusal("IDEMPOTENCY_MISMATCH");
    return { ...earlier.answer, replayed: true };
  }
  const records = linkDrafts(read, session, madeIds, model.nowMs);
  const isMain = options.rewindTo !== undefined || records.some(({ side }) => !side);
  const turnState = turnAfter(session, options.turn, isMain, model.nowMs);
  if (options.expect !== undefined && options.expect.head !== session.headId) throw new ModelRefusal("APPEND_CONFLICT");
  const held = new Set(session.records.map(({ record }) => record.id));
  if (records.some(({ record }) => held.has(record.id))) throw new ModelRefusal("RECORD_ID_TAKEN");

  const firstSeq = session.records.length + 1;
  session.records.push(...records);
  session.headId = records.findLast(({ side }) => !side)?.record.id ?? session.headId;
  if (options.rewindTo !== undefined) session.headId = options.rewindTo;
  session.windowSeq = options.windowFromSeq ?? session.windowSeq;
  Object.assign(session, turnState);
  noteHead(session);
  if (options.entry !== undefined) replaceEntry(session, withFields(session.entry, options.entry), model.nowMs);
  if (records.length > 0 && options.entry?.["updatedAt"] === undefined)
    session.updatedAtMs = Math.max(session.updatedAtMs, model.nowMs);
  const answer: ModelAppendAnswer = {
    records: records.map(({ record: { id, parentId }, side, tsMs, storedAtMs }, index) => {
      return { seq: firstSeq + index, id, parentId, side, tsMs, storedAtMs };
    }),
    head: headOf(session),
    revision: session.revision,
    replayed: false,
  };
  if (options.idempotencyKey !== undefined) session.keyed.set(options.idempotencyKey, { drafts, answer });
  return answer;
}

/** Adds a line that another program wrote to the transcript without using the store. */
export function appendLineToModel(model: SessionModel, ref: SessionRef, line: string, record: SessionRecord): void {
  const session = findSession(model, ref);
  if (session === undefined) return;
  const side = isSideRecord(record);
  const tsMs = Date.parse(record.timestamp);
  const bytes = Buffer.byteLength(line);
  session.records.push({ record, source: line, isSourceCanonical: true, bytes, side, tsMs, storedAtMs: null });
  if (!side) session.headId = record.id;
  session.isTouchedByOthers = true;
  noteHead(session);
}

/** Serializes drafts so that the drafts of two appends with one key can be compared. */
function draftsText(drafts: readonly AppendDraft[]): string {
  return JSON.stringify(
    drafts.map((draft) =>
      isSourced(draft) ? [Buffer.from(draft.source).toString("base64"), draft.record ?? null] : draft,
    ),
  );
}

function isSourced(draft: AppendDraft): draft is SourcedDraft {
  return "source" in draft && !("type" in draft);
}

interface ReadDraft extends Pick<ModelRecord, "source" | "isSourceCanonical"> {
  readonly fields: RecordDraft & { readonly timestamp: string };
}

function readDraft(draft: AppendDraft, nowMs: number): ReadDraft {
  if (!isSourced(draft)) {
    const { type, id, parentId, timestamp = new Date(nowMs).toISOString(), ...rest } = plainJson(draft as RecordDraft);
    const named = { type, ...(id === undefined ? {} : { id }), ...(parentId === undefined ? {} : { parentId }) };
    return { fields: { ...named, timestamp, ...rest }, source: null, isSourceCanonical: true };
  }
  const { source, record } = draft;
  const meant: unknown = record === undefined ? JSON.parse(source as string) : plainJson(record);
  return { fields: meant as SessionRecord & RecordDraft, source, isSourceCanonical: record === undefined };
}

function linkDrafts(
  drafts: readonly ReadDraft[],
  session: ModelSession,
  madeIds: readonly string[],
  nowMs: number,
): readonly ModelRecord[] {
  let { headId } = session;
  return drafts.map(({ fields, source, isSourceCanonical }, index) => {
    const { type, id = madeIds[index] ?? `made ${index}`, parentId = headId, timestamp, ...rest } = fields;
    const record: SessionRecord = { type, id, parentId, timestamp, ...rest };
    const side = isSideRecord(record);
    if (!side) headId = id;
    const bytes = Buffer.byteLength(source ?? lineOf(record));
    return { record, source, isSourceCanonical, bytes, side, tsMs: Date.parse(timestamp), storedAtMs: nowMs };
  });
}

/** Serializes a record as a line, with U+2028 and U+2029 escaped. */
export function lineOf(record: SessionRecord): string {
  return JSON.stringify(record).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

function turnAfter(
  { fence, turn }: ModelSession,
  request: TurnRequest | undefined,
  isMain: boolean,
  nowMs: number,
): Pick<ModelSession, "fence" | "turn"> {
  const isRunning = turn !== null && turn.leaseUntilMs > nowMs;
  if (request === undefined) {
    if (isRunning && isMain) throw new ModelRefusal("SESSION_BUSY");
    return { fence, turn };
  }
  if (request.action === "open") {
    if (isRunning) throw new ModelRefusal("SESSION_BUSY");
    if (request.fence !== fence + 1) throw new ModelRefusal("TURN_FENCED");
    const { turnId, owner, leaseUntilMs } = request;
    return { fence: request.fence, turn: { turnId, owner, leaseUntilMs, fence: request.fence } };
  }
  if (turn === null || request.fence !== fence) throw new ModelRefusal("TURN_FENCED");
  if (request.action === "renew") return { fence, turn: { ...turn, leaseUntilMs: request.leaseUntilMs } };
  return { fence, turn: request.action === "close" ? null : turn };
}
