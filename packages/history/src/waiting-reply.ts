import { isFields, throughlineKind, type Fields } from "@throughline/core/internal";
import type { SessionRecord, StoredRecord } from "@throughline/core";
import type { NeutralAssistant, NeutralMessage } from "./neutral-message.ts";

/**
 * Marks the newest reply while a call of it waits for a decision. A provider refuses the reply without the results of
 * all its calls, and a made-up result would answer the call before the person does.
 *
 * @param messages the messages of the branch, which end with the reply and the results that it has
 * @param records the log of the branch, in order of seq
 */
export function markWaitingReply(
  messages: readonly NeutralMessage[],
  records: readonly StoredRecord[],
): readonly NeutralMessage[] {
  const { from, openIds, seq } = newestReply(messages);
  if (openIds.size === 0 || !isWaiting(openIds, recordsAfter(records, seq))) return messages;
  return messages.map((message, at) =>
    at >= from && message.role === "assistant" ? { ...message, isWaiting: true } : message,
  );
}

/** Recognizes a record after which a reply may wait. Every other record leaves a reply that does not wait as it is. */
export function beginsWait(record: SessionRecord): boolean {
  const data = dataOf(record);
  return data?.["state"] === "waiting" || data?.["decision"] === "wait";
}

interface NewestReply {
  /** Holds the position of the first part of the reply. */
  readonly from: number;
  /** Holds the seq of the last part. */
  readonly seq: number;
  readonly openIds: ReadonlySet<string>;
}

/** The set of open calls is empty when the messages do not end with a reply and results. */
function newestReply(messages: readonly NeutralMessage[]): NewestReply {
  const answered = new Set<string>();
  const openIds = new Set<string>();
  let later: NeutralAssistant | null = null;
  let seq = 0;
  let at = messages.length - 1;
  for (; at >= 0; at--) {
    const message = messages[at] as NeutralMessage;
    if (message.role === "toolResult") {
      if (later !== null) break;
      answered.add(message.toolCallId);
    } else if (message.role === "assistant" && (later === null || isEarlierPart(message, later))) {
      for (const block of message.content) if (block.type === "toolCall") openIds.add(block.id);
      later = message;
      seq ||= message.seq;
    } else break;
  }
  return { from: at + 1, seq, openIds: openIds.difference(answered) };
}

function isEarlierPart({ responseId }: NeutralAssistant, later: NeutralAssistant): boolean {
  return later.isFragment || (responseId !== null && responseId === later.responseId);
}

function* recordsAfter(records: readonly StoredRecord[], seq: number): Generator<SessionRecord> {
  for (let at = records.length - 1; at >= 0; at--) {
    const stored = records[at] as StoredRecord;
    if (stored.seq <= seq) return;
    yield stored.record;
  }
}

/**
 * The turn that asked has ended with a waiting call, and no other turn has begun since. Once one has begun, only a call
 * without a decision still waits.
 */
function isWaiting(openIds: ReadonlySet<string>, newestFirst: Iterable<SessionRecord>): boolean {
  const decided = new Set<unknown>();
  let isNewestMark = true;
  for (const record of newestFirst) {
    const { state, callId, decision } = dataOf(record) ?? {};
    if (state !== undefined) {
      if (isNewestMark && state === "waiting") return true;
      isNewestMark = false;
    } else if (decision === "wait" && openIds.has(callId as string) && !decided.has(callId)) return true;
    else decided.add(callId);
  }
  return false;
}

/** Returns the data of a turn's mark, or of a decision on a call. */
function dataOf(record: SessionRecord): Fields | null {
  const kind = throughlineKind(record);
  const { data } = record;
  return (kind === "turn" || kind === "approval") && isFields(data) ? data : null;
}
