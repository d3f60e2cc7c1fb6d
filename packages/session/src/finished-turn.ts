import type { AssistantMessage, Message, Usage } from "@throughline/core";
import type { Gauge } from "@throughline/tokens";
import type { CallFacts } from "./call-record.ts";
import type { HoldBack } from "./held-deltas.ts";
import { isAnswered, type KeyedTurn } from "./keyed-turn.ts";
import type { Turn } from "./turn.ts";
import type { SessionLog } from "./session-log.ts";
import { textOfContent } from "./window-facts.ts";

/**
 * Builds the result for the caller. Text and stop reason are those of the last reply, and a reply that `holdBack`
 * withholds has no text.
 */
export function finishedTurn(parts: Omit<Turn, "text" | "stopReason">, holdBack: HoldBack | null): Turn {
  const reply = parts.messages.findLast((message): message is AssistantMessage => message.role === "assistant");
  const text = textOfContent(reply?.content);
  const isHeldBack = holdBack?.(text, true) ?? false;
  return { ...parts, text: isHeldBack ? "" : text, stopReason: reply?.stopReason ?? null };
}

/**
 * Builds the result of an earlier turn with the same idempotency key. Null when that turn has no result and must be
 * resumed.
 */
export function replayedTurn(
  log: SessionLog,
  turnId: string,
  keyed: KeyedTurn,
  holdBack: HoldBack | null,
): Turn | null {
  const { state, denial, records, calls } = keyed;
  if (!isAnswered(state)) return null;
  const messages = records.flatMap(({ record }) => (record.type === "message" ? [record["message"] as Message] : []));
  const parts = {
    turnId,
    ref: log.ref,
    messages,
    calls,
    usage: usageOf(calls),
    gauge: gaugeNow(log),
    replayed: true,
    joined: false,
  };
  return finishedTurn({ ...parts, outcome: state, denial }, holdBack);
}

function usageOf(calls: readonly CallFacts[]): Usage | null {
  const actuals = calls.flatMap(({ actual }) => (actual === null ? [] : [actual]));
  const sum = (at: number): number => actuals.reduce((total, actual) => total + (actual[at] ?? 0), 0);
  return actuals.length === 0 ? null : { input: sum(0), output: sum(1), cacheRead: sum(2), cacheWrite: sum(3) };
}

function gaugeNow(log: SessionLog): Gauge {
  const { facts, entry } = log;
  const tokens = facts.measured?.occupancyTokens ?? 0;
  const source = facts.measured === null ? "heuristic" : "actual";
  return log.gauge({ tokens, lowTokens: tokens, highTokens: tokens, source }, entry.contextTokens ?? null);
}
