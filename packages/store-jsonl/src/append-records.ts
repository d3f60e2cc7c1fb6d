import { type AppendedRecord, assertNotForgotten, quote, refused } from "@throughline/core/internal";
import type { AppendResult, SessionHead } from "@throughline/core";
import type { AppendPlan, AppendRequest } from "@throughline/store-kit/internal";
import { planAppend } from "@throughline/store-kit/internal";
import type { AgentFolder } from "./agent-folder.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { fileError } from "./file-work.ts";
import { ownHead, type OpenTranscript } from "./open-transcript.ts";
import type { KeyedAppends } from "./log-image.ts";
import { headerBefore } from "./lost-records.ts";
import { entryOf } from "./undecodable-entry.ts";
import { encodeEntry, patchMembers, type KeptHead, type SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import type { StoreEnvelope, WindowMark } from "./store-envelope.ts";
import { encodeStoredLine, type EncodedLine } from "./stored-line.ts";
import { maxOwnLineBytes } from "./transcript-lines.ts";
import type { Transcript } from "./transcript.ts";

/** Reserves room for staged text: an append is staged only while less than this waits to be written. */
const waitingLength = 4 * 1024 * 1024;

/**
 * Plans an append on the current session, under its lock.
 * @throws {ThroughlineError} as `planAppend`, and CODEC_FAILED
 */
export function planOn(held: OpenTranscript, keyed: KeyedAppends, request: AppendRequest, nowMs: number): AppendPlan {
  const { row, ref, transcript } = held;
  const { sessionId, revision, createdAtMs, updatedAtMs } = row;
  // This throws before planning: an entry patch that cannot be decoded leaves even the revision unknown.
  const entry = entryOf(row);
  const target = {
    frame: { ref, sessionId, revision, head: transcript.head, createdAtMs, updatedAtMs },
    entry: () => entry,
    holdsId: (id: string) => transcript.seqById.get(id) !== undefined,
    findKeyed: (key: string, digest: string) => earlierAppend(held, keyed, key, digest),
  };
  return planAppend(request, target, nowMs);
}

export interface StagedAppend {
  readonly plan: AppendPlan;
  readonly lines: readonly EncodedLine[];
  /** Is true when the lines are already in the file, because it was rewritten with them. */
  readonly isWritten: boolean;
}

/** Stages the lines of an append that was planned at `nowMs`, under the session's lock. */
export function stageAppend(
  context: StoreContext,
  held: OpenTranscript,
  { request, plan, nowMs }: { readonly request: AppendRequest; readonly plan: AppendPlan; readonly nowMs: number },
  folder: AgentFolder,
): StagedAppend {
  const { codec } = context;
  const { transcript, file, path, owner, row } = held;
  const { linked } = plan;
  const { lastSeq } = transcript.head;
  const ending = endingOf({ codec, held, request, plan, nowMs });
  const count = linked.length;
  const lines: EncodedLine[] = [];
  // All staged lines are joined into one string, so their total must fit into one as well.
  let length = 0;
  for (const [index, item] of linked.entries()) {
    const envelope: StoreEnvelope = {
      seq: lastSeq + index + 1,
      ...(count > 1 ? { batch: [index + 1, count] as const } : {}),
      at: nowMs,
      ...(index === count - 1 ? ending : {}),
    };
    const encoded = encodeLine(index, item, envelope, codec, owner);
    length += encoded.line.length + 1;
    lines.push(encoded);
  }
  if (length > maxOwnLineBytes - waitingLength)
    throw refused("BATCH_TOO_LARGE", `The lines of the append have ${length} characters.`, { length });
  file.repairTail(path, owner);
  const [first] = linked;
  // An imported header replaces the store's header, because pi and OpenClaw identify a file by its first line.
  const isHeaderFirst =
    lastSeq === 0 && first?.record.type === "session" && !first.isSourceCanonical && lines[0]?.text === first.source;
  if (isHeaderFirst) {
    const texts = lines.map(({ line }) => `${line}\n`);
    file.replace(path, folder.temporary(row.fileName), owner, texts);
  } else {
    file.stage(owner, transcript.endBytes === 0 ? headerBefore(context, transcript, row) : "", lines);
  }
  return { plan, lines, isWritten: isHeaderFirst };
}

/**
 * Writes an append without records as a line of the entries log, because no transcript line can carry it. Call it under
 * the locks of the session and of the entries log.
 */
export function writeEntry(
  agent: AgentSessionFiles,
  { row, transcript }: OpenTranscript,
  { options, keyed }: AppendRequest,
  { frame, entry }: AppendPlan,
  nowMs: number,
): void {
  const { head, revision, updatedAtMs } = frame;
  const movesHead = options.turn !== undefined || options.rewindTo !== undefined || options.windowFromSeq !== undefined;
  if (entry === null && !movesHead && keyed === null) return;
  const next: SessionRow = {
    ...row,
    revision,
    ...(entry === null ? {} : { entry, updatedAtMs }),
    ...(movesHead ? { savedHead: head } : {}),
  };
  const { sessionId } = row;
  const append = keyed === null ? null : ([keyed.key, keyed.digest, revision, keptHead(head), nowMs] as const);
  agent.log.write({
    op: "save",
    rows: [next],
    ...(append === null ? {} : { keyed: [{ sessionId, appends: [append] }] }),
  });
  if (movesHead) transcript.acceptSavedHead(head);
}

function keptHead({ lastSeq, headId, windowSeq, fence, turn }: SessionHead): KeptHead {
  return [lastSeq, headId, windowSeq, fence, turn];
}

/** Encodes a line, and refuses one that exceeds the longest string, because it could not be read again. */
function encodeLine(
  index: number,
  item: AppendPlan["linked"][number],
  envelope: StoreEnvelope,
  codec: StoreContext["codec"],
  owner: OpenTranscript["owner"],
): EncodedLine {
  let bytes: number | null = null;
  let cause: unknown;
  try {
    const encoded = encodeStoredLine(item, envelope, codec, owner);
    // A line that is clearly short is not measured, which saves time.
    const isShort = encoded.line.length * 3 < maxOwnLineBytes;
    bytes = isShort ? 0 : Buffer.byteLength(encoded.line);
    if (bytes < maxOwnLineBytes) return encoded;
  } catch (error) {
    // An overlong string throws a RangeError when it is concatenated, and this code when bytes are decoded.
    const isTooLong = error instanceof RangeError || (error as NodeJS.ErrnoException).code === "ERR_STRING_TOO_LONG";
    if (!isTooLong) throw error;
    cause = error;
  }
  const message = `Draft ${index} is longer as a line than ${maxOwnLineBytes} bytes.`;
  throw refused("RECORD_TOO_LARGE", message, { bytes, index }, cause);
}

/**
 * Corrects the result by the file, because another program's line may precede the append. `isLast` is false when a
 * later append of the same write has moved the head.
 */
export function inFile(
  { file, path }: OpenTranscript,
  { plan, lines }: StagedAppend,
  isLast: boolean,
): Pick<AppendPlan, "result" | "events"> {
  const now = file.current;
  const records = appendedIn(now, lines, path);
  const range = { fromSeq: records[0]?.seq ?? 0, toSeq: records.at(-1)?.seq ?? 0 };
  const events = plan.events.map((event) => (event.name === "records-appended" ? { ...event, ...range } : event));
  const head = isLast ? ownHead(now?.head ?? plan.result.head) : { ...plan.result.head, lastSeq: range.toSeq };
  return { result: { ...plan.result, records, head }, events };
}

function appendedIn(
  transcript: Transcript | null,
  lines: readonly EncodedLine[],
  path: string,
): readonly AppendedRecord[] {
  return lines.map(({ stored }) => {
    const seq = transcript?.seqById.get(stored.id);
    if (seq === undefined)
      throw fileError(new Error(`the record ${stored.id} was not found after it was written`), path, "unknown");
    const { id, parentId, side, tsMs, storedAtMs } = stored;
    return { seq, id, parentId, side, tsMs, storedAtMs: storedAtMs ?? 0 };
  });
}

/**
 * Returns the result of an earlier append with this key, or null.
 * @throws {ThroughlineError} IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED
 */
function earlierAppend(
  { row, transcript }: OpenTranscript,
  keyed: KeyedAppends,
  key: string,
  digest: string,
): AppendResult | null {
  const append = keyed.find(row.sessionId, key);
  if (append === null) {
    const earlier = transcript.remembered.find(key, digest);
    if (earlier === null) assertNotForgotten(key, () => keyed.horizonMs(row.sessionId));
    return earlier;
  }
  if (append[1] !== digest)
    throw refused("IDEMPOTENCY_MISMATCH", `Other drafts were appended with this key: ${quote(key)}.`, {
      idempotencyKey: key,
    });
  const [, , revision, kept] = append;
  const head = kept === undefined ? transcript.head : headOf(row.sessionId, kept);
  return { records: [], head: ownHead(head), revision, durability: "disk", replayed: true };
}

function headOf(sessionId: string, [lastSeq, headId, windowSeq, fence, turn]: KeptHead): SessionHead {
  return { sessionId, lastSeq, headId, windowSeq, fence, turn };
}

interface DecidedAppend {
  readonly codec: StoreContext["codec"];
  readonly held: OpenTranscript;
  readonly request: AppendRequest;
  readonly plan: AppendPlan;
  readonly nowMs: number;
}

function endingOf({ codec, held, request, plan, nowMs }: DecidedAppend): Partial<StoreEnvelope> {
  const { options, keyed } = request;
  const { head, revision, updatedAtMs } = plan.frame;
  // Another program's line moved the activity time ahead. The time is stored, because a clock that is set back would
  // discard it later.
  const isAhead = updatedAtMs > nowMs;
  const claimsTime = options.entry?.["updatedAt"] !== undefined || isAhead;
  return {
    ...(keyed === null ? {} : { idem: keyed.key, digest: keyed.digest, revision: held.row.revision }),
    ...(options.turn === undefined ? {} : { fence: head.fence, turn: head.turn }),
    ...(options.rewindTo === undefined ? {} : { head: options.rewindTo }),
    ...(options.windowFromSeq === undefined
      ? {}
      : { window: options.windowFromSeq, mark: markOf(held, plan, claimsTime ? updatedAtMs : nowMs) }),
    ...(plan.entry === null
      ? {}
      : {
          ...patchOf(codec, held, plan, options.entry ?? {}),
          revision,
        }),
    ...(claimsTime && (plan.entry !== null || isAhead) ? { updated: updatedAtMs } : {}),
  };
}

function patchOf(
  codec: StoreContext["codec"],
  { ref, row }: OpenTranscript,
  { entry }: AppendPlan,
  given: Readonly<Record<string, unknown>>,
): Partial<StoreEnvelope> {
  // The stored activity time is the clamped one, because a caller may claim a future time.
  const { set, unset } = patchMembers("updatedAt" in given ? { ...given, updatedAt: entry?.updatedAt } : given);
  if (codec.isCoded) return { entryEnc: encodeEntry(codec.coder, { set, unset }, ref, row.sessionId) };
  return { entry: set, ...(unset.length === 0 ? {} : { unset }) };
}

function markOf({ transcript }: OpenTranscript, { linked, frame }: AppendPlan, activeAtMs: number): WindowMark {
  const { headId, fence, turn } = frame.head;
  return {
    messages: transcript.messageCount + linked.filter(({ record }) => record.type === "message").length,
    head: headId,
    fence,
    turn,
    updated: Math.max(transcript.updatedAtMs, activeAtMs),
    revision: frame.revision,
  };
}
