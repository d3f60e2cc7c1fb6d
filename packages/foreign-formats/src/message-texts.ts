import type { ProviderMapping, ReplayTurn } from "@throughline/history/internal";
import type { WriteOptions, WrittenSession } from "./format-writer.ts";
import { WrittenConversation } from "./write-conversation.ts";
import { LossLog } from "./write-losses.ts";

/**
 * Gives the messages that a model would be sent now, in a provider's form; what they have no place for is reported. A step of
 * work that gives no message gives undefined.
 *
 * @param marksFailures whether a message says that a result is of a failed call
 */
export function* sentMessages<Message extends object>(
  session: WrittenSession,
  { rules, turn: messagesOf }: ProviderMapping<Message>,
  { onLoss }: WriteOptions,
  marksFailures: boolean = true,
): Generator<Message | undefined> {
  const losses = new LossLog(onLoss);
  // What begins or ends a request is no part of the conversation.
  const kept = { ...rules, trailingAssistant: () => "keep" as const };
  const conversation = new WrittenConversation(session, kept, losses);
  for (const turn of conversation.context()) {
    if (turn === undefined) {
      yield;
      continue;
    }
    reportRole(turn, conversation, losses);
    if (!marksFailures) reportFailures(turn, conversation, losses);
    yield* messagesOf(turn);
  }
  if (session.records.some(({ type }) => type === "message"))
    losses.add({ what: "changed", kind: "messages without time and usage", recordId: null });
}

/** Reports a message that becomes one of the user. */
export function reportRole(turn: ReplayTurn, conversation: WrittenConversation, losses: LossLog): void {
  const origin = conversation.originOf(turn.recordId);
  const role = origin?.message?.role;
  if (turn.role !== "user" || role === undefined || role === "user" || role === "toolResult") return;
  losses.tell("changed", role === "compactionSummary" ? "summary as user text" : `${role} as user text`, origin);
}

/** Reports results of failed calls, where nothing says that they failed. */
export function reportFailures(turn: ReplayTurn, conversation: WrittenConversation, losses: LossLog): void {
  if (turn.role !== "user") return;
  for (const { isError, recordId } of turn.results)
    if (isError) losses.tell("left-out", "mark of a failed result", conversation.originOf(recordId));
}
