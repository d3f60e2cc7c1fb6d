import type { WireNode } from "@throughline/wire/internal";
import type { SessionRequest } from "./choose-session.ts";
import type { KnownSession } from "./session-logs.ts";

/** A request whose history the session holds. */
export type TurnRequest = SessionRequest;

/** Where a question stands in its session. */
export interface QuestionPlace {
  /** The message that its first new message follows; null for none. */
  readonly from: WireNode | null;
  /** The record that stands right before it. */
  readonly parentId: string | null;
  /** How many messages of the request the log has. */
  readonly known: number;
}

/**
 * Finds what is new in a request. A client may send only that, the whole history before it, or the same question again that was
 * never answered.
 */
export function questionPlace(
  { split, headers, requestSha256 }: Pick<TurnRequest, "split" | "headers" | "requestSha256">,
  { log, headId }: Pick<KnownSession, "log" | "headId">,
  replyId: string | null,
): QuestionPlace {
  const head = headId === null ? null : log.nodeOf(headId);
  // Behind a record of another program nothing is a repeat.
  const isOwn = head === null || head.lastId === headId;
  const followed = replyId === null ? null : log.reply(replyId);
  if (followed !== null) return matched(log.match(split, followed), followed);
  const whole = log.match(split);
  const isHistory = whole.nodes.some(({ isReply }) => isReply) || (isOwn && whole.node !== null && whole.node === head);
  if (isHistory) return matched(whole, null);
  if (!isOwn) return { from: head, known: 0, parentId: headId };
  const lastReply = lastReplyBefore(head);
  const open = log.match(split, lastReply);
  // The question stands there already, and nobody has answered it.
  if (open.known > 0 && open.node === head) return matched(open, lastReply);
  if (head?.isReply === true && isRepeat(headers, log.callOf(requestSha256)?.outcome)) {
    const before = lastReplyBefore(head.parent);
    const asked = log.match(split, before);
    // It was answered, and the client did not hear all of it: its answer is a branch beside the first.
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

/** The newest reply up to a message; null: the beginning. */
export function lastReplyBefore(from: WireNode | null): WireNode | null {
  let node = from;
  while (node !== null && !node.isReply) node = node.parent;
  return node;
}

/** SDKs count their repeats in a header. */
function isRepeat(headers: TurnRequest["headers"], outcome: string | undefined): boolean {
  return outcome === "answered" && Number(headers["x-stainless-retry-count"] ?? 0) > 0;
}
