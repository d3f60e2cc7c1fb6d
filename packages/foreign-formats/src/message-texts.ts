import type { ProviderMapping, ReplayTurn } from "@throughline/history/internal";
import type { WriteOptions, WrittenSession } from "./format-writer.ts";
import { WrittenConversation } from "./write-conversation.ts";
import { LossLog } from "./write-losses.ts";

/**
 * Yields the messages that a model would get now, in a provider's form. Data that the form cannot hold is reported. A
 * step without a message yields undefined, so that the caller can pause.
 *
 * @param marksFailures whether a message can state that a result is from a failed call
 */
export function* sentMessages<Message extends object>(
  session: WrittenSession,
  { rules, turn: messagesOf }: ProviderMapping<Message>,
  { onLoss }: WriteOptions,
  marksFailures: boolean = true,
): Generator<Message | undefined> {
  const losses = new LossLog(onLoss);
  // The provider's rules for the beginning and end of a request do not apply to a stored conversation.
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

/** A message of another role becomes a user's message, which loses the role. */
export function reportRole(turn: ReplayTurn, conversation: WrittenConversation, losses: LossLog): void {
  const origin = conversation.originOf(turn.recordId);
  const role = origin?.message?.role;
  if (turn.role !== "user" || role === undefined || role === "user" || role === "toolResult") return;
  losses.tell("changed", role === "compactionSummary" ? "summary as user text" : `${role} as user text`, origin);
}

/** The format cannot state that a call failed, so the loss is reported. */
export function reportFailures(turn: ReplayTurn, conversation: WrittenConversation, losses: LossLog): void {
  if (turn.role !== "user") return;
  for (const { isError, recordId } of turn.results)
    if (isError) losses.tell("left-out", "mark of a failed result", conversation.originOf(recordId));
}
