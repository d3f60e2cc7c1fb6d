import type {
  AppendedRecord,
  AppendOptions,
  AppendResult,
  SessionEntry,
  SessionHead,
  SessionRef,
} from "@throughline/core";
import {
  assertBatchSize,
  headAfterAppend,
  type LinkedRecord,
  linkRecords,
  nextUpdatedAtMs,
  ownEntry,
  patchEntry,
  type PreparedRecord,
  quote,
  refused,
} from "@throughline/core/store";
import { ownHeaderLine } from "./own-header.ts";
import { encodeEntry, patchMembers, type SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import {
  encodeStoredLine,
  type EncodedLine,
  type LineOwner,
  type StoreEnvelope,
  type WindowMark,
} from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";
import { appendedIn, type Transcript } from "./transcript.ts";

/** A session as it stands under its lock. */
export interface HeldSession {
  /** With every change that lies in the transcript. */
  readonly row: SessionRow;
  readonly ref: SessionRef;
  readonly owner: LineOwner;
  readonly file: TranscriptFile;
  readonly path: string;
  readonly transcript: Transcript;
}

export interface AppendRequest {
  readonly prepared: readonly PreparedRecord[];
  readonly digest: string;
  readonly options: AppendOptions;
}

type Outcome = Omit<AppendResult, "durability">;

/** What an append does to the entry. */
export interface EntryChange {
  readonly entry: SessionEntry;
  readonly revision: number;
  readonly updatedAtMs: number;
  readonly envelope: Partial<StoreEnvelope>;
  readonly clampedMs: number | null;
}

/** The result of an earlier append with this key, or null. @throws {ThroughlineError} IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED */
export function earlierAppend({ row, transcript }: HeldSession, { options, digest }: AppendRequest): Outcome | null {
  const key = options.idempotencyKey;
  if (key === undefined) return null;
  const keyed = row.keyed?.find(([one]) => one === key);
  if (keyed !== undefined) {
    if (keyed[1] !== digest)
      throw refused("IDEMPOTENCY_MISMATCH", `Other drafts were appended with this key: ${quote(key)}.`, {
        idempotencyKey: key,
      });
    return { records: [], head: ownHead(transcript.head), revision: keyed[2], replayed: true };
  }
  return transcript.remembered.find(key, digest);
}

/** Decides the append and writes it, in one write. Under the session's lock. */
export function appendRecords(
  context: StoreContext,
  held: HeldSession,
  request: AppendRequest,
  temporary: string,
): Outcome {
  const { transcript, file, path, owner } = held;
  const { options } = request;
  const linked = linkRecords(request.prepared, transcript.head.headId);
  assertBatchSize(linked, context.limits);
  const nowMs = context.clock.nowMs();
  headAfterAppend(transcript.head, linked, options, nowMs);
  const taken = linked.find(({ record }) => transcript.seqById.has(record.id))?.record.id;
  if (taken !== undefined)
    throw refused("RECORD_ID_TAKEN", `The session holds a record ${quote(taken)}.`, { id: taken });
  const change = options.entry === undefined ? null : entryChange(context, held, options.entry, nowMs);
  const lines = encodeBatch(context, held, request, linked, change, nowMs);
  file.repairTail(path, owner);
  const records = writeBatch(held, lines, linked, temporary);
  const now = file.current ?? transcript;
  if (change !== null && change.clampedMs !== null)
    context.emit({
      name: "updated-at-clamped",
      ref: held.ref,
      claimedMs: change.clampedMs,
      storedMs: change.updatedAtMs,
    });
  return { records, head: ownHead(now.head), revision: change?.revision ?? held.row.revision, replayed: false };
}

/** The entry after a patch. @throws {ThroughlineError} INPUT_INVALID */
export function entryChange(
  context: StoreContext,
  { row, ref }: HeldSession,
  given: Readonly<Record<string, unknown>>,
  nowMs: number,
): EntryChange {
  const claimedMs = given["updatedAt"];
  const { updatedAtMs, wasClamped } = nextUpdatedAtMs(row.updatedAtMs, claimedMs, nowMs);
  const patch = wasClamped ? { ...given, updatedAt: updatedAtMs } : given;
  const entry = ownEntry(patchEntry(row.entry, patch));
  if (entry.sessionId !== row.sessionId)
    throw refused("INPUT_INVALID", "An append cannot change the sessionId of the entry.", { sessionId: row.sessionId });
  const { set, unset } = patchMembers(patch);
  const members = context.codec.isCoded
    ? { entryEnc: encodeEntry(context.codec.coder, { set, unset }, ref, row.sessionId) }
    : { entry: set, ...(unset.length === 0 ? {} : { unset }) };
  const revision = row.revision + 1;
  const updated = claimedMs === undefined ? {} : { updated: updatedAtMs };
  return {
    entry,
    revision,
    updatedAtMs,
    envelope: { ...members, ...updated, revision },
    clampedMs: wasClamped ? Number(claimedMs) : null,
  };
}

/** A head of the caller's own. */
export function ownHead(head: SessionHead): SessionHead {
  return { ...head, turn: head.turn === null ? null : { ...head.turn } };
}

function markOf(
  { transcript, row }: HeldSession,
  linked: readonly LinkedRecord[],
  { headId, fence, turn }: SessionHead,
  change: EntryChange | null,
  nowMs: number,
): WindowMark {
  return {
    messages: transcript.messageCount + linked.filter(({ record }) => record.type === "message").length,
    head: headId,
    fence,
    turn,
    updated: Math.max(transcript.updatedAtMs, change?.envelope.updated ?? nowMs),
    revision: change?.revision ?? row.revision,
  };
}

function encodeBatch(
  context: StoreContext,
  held: HeldSession,
  { options, digest }: AppendRequest,
  linked: readonly LinkedRecord[],
  change: EntryChange | null,
  nowMs: number,
): readonly EncodedLine[] {
  const { transcript, owner, row } = held;
  const { lastSeq } = transcript.head;
  const count = linked.length;
  const after = headAfterAppend(transcript.head, linked, options, nowMs);
  return linked.map((item, index) => {
    const isLast = index === count - 1;
    const envelope: StoreEnvelope = {
      seq: lastSeq + index + 1,
      ...(count > 1 ? { batch: [index + 1, count] as const } : {}),
      at: nowMs,
      ...(isLast && options.idempotencyKey !== undefined
        ? { idem: options.idempotencyKey, digest, revision: row.revision }
        : {}),
      ...(isLast && options.turn !== undefined ? { fence: after.fence, turn: after.turn } : {}),
      ...(isLast && options.rewindTo !== undefined ? { head: options.rewindTo } : {}),
      ...(isLast && options.windowFromSeq !== undefined
        ? { window: options.windowFromSeq, mark: markOf(held, linked, after, change, nowMs) }
        : {}),
      ...(isLast ? change?.envelope : {}),
    };
    return encodeStoredLine(item, envelope, context.codec, owner);
  });
}

function writeBatch(
  held: HeldSession,
  lines: readonly EncodedLine[],
  linked: readonly LinkedRecord[],
  temporary: string,
): readonly AppendedRecord[] {
  const { transcript, file, path, owner, row } = held;
  const [first] = linked;
  const isEmpty = transcript.head.lastSeq === 0;
  // An imported header takes the place of ours: pi and OpenClaw know a file by its first line.
  const isHeaderFirst = isEmpty && first?.record.type === "session" && lines[0]?.text === first.source;
  if (isHeaderFirst)
    return appendedIn(
      file.replace(
        path,
        temporary,
        owner,
        lines.map(({ line }) => line),
      ),
      lines,
      path,
    );
  const prefix = transcript.endBytes === 0 ? `${ownHeaderLine(row.sessionId, row.key, row.createdAtMs)}\n` : "";
  return file.append(path, owner, prefix, lines);
}
