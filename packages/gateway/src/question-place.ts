import type { WireNode } from "./wire/index.ts";
import type { SessionRequest } from "./running-calls.ts";
import type { KnownSession } from "./session-logs.ts";

export type TurnRequest = SessionRequest;

export interface QuestionPlace {
  /** Is null when no message precedes the first new message. */
  readonly from: WireNode | null;
  /** May be a record of another program, which has no log node. */
  readonly parentId: string | null;
  readonly known: number;
}

/**
 * A client may send only new messages, the whole history, or an unanswered question once more. This function finds the
 * new messages in each case.
 */
export function questionPlace(
  { split, headers, requestSha256 }: Pick<TurnRequest, "split" | "headers" | "requestSha256">,
  { log, headId }: Pick<KnownSession, "log" | "headId">,
  replyId: string | null,
): QuestionPlace {
  const head = headId === null ? null : log.nodeOf(headId);
  // When another program wrote the newest record, the request cannot be a repeat of the newest question.
  const isOwn = head === null || head.lastId === headId;
  const followed = replyId === null ? null : log.reply(replyId);
  if (followed !== null) return matched(log.match(split, followed), followed);
  const whole = log.match(split);
  const isHistory = whole.nodes.some(({ isReply }) => isReply) || (isOwn && whole.node !== null && whole.node === head);
  if (isHistory) return matched(whole, null);
  if (!isOwn) return { from: head, known: 0, parentId: headId };
  const lastReply = lastReplyBefore(head);
  const open = log.match(split, lastReply);
  // The log ends with the same question without an answer, so the request repeats it.
  if (open.known > 0 && open.node === head) return matched(open, lastReply);
  if (head?.isReply === true && isRepeat(headers, log.callOf(requestSha256)?.outcome)) {
    const before = lastReplyBefore(head.parent);
    const asked = log.match(split, before);
    // The question was answered, but the client did not receive the whole answer. The new answer becomes a sibling
    // branch of the first.
    if (asked.node === head.parent && asked.known === split.units.length) return matched(asked, before);
  }
  const { known, from } = matched(log.match(split, head), head);
  return { known, from, parentId: known === 0 ? headId : (from?.lastId ?? null) };
}

function matched(
  { node, known }: { readonly node: WireNode | null; readonly known: number },
  from: WireNode | null,
): QuestionPlace {
  const last = known === 0 ? from : node;
  return { from: last, known, parentId: last?.lastId ?? null };
}

/** Returns null when no reply precedes the message. */
export function lastReplyBefore(from: WireNode | null): WireNode | null {
  let node = from;
  while (node !== null && !node.isReply) node = node.parent;
  return node;
}

/** The SDKs of the providers count their retries in a header, which distinguishes a repeat from a second equal question. */
function isRepeat(headers: TurnRequest["headers"], outcome: string | undefined): boolean {
  return outcome === "answered" && Number(headers["x-stainless-retry-count"] ?? 0) > 0;
}
