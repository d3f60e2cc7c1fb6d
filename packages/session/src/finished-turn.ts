import type { AssistantMessage, Message, Usage } from "@throughline/core";
import { gaugeOf, type Gauge } from "@throughline/tokens";
import { readCallPart, type CallFacts } from "./call-record.ts";
import type { HoldBack } from "./held-deltas.ts";
import type { SendDenial } from "./send-denial.ts";
import type { Turn } from "./session.ts";
import type { SessionLog } from "./session-log.ts";
import { readTurnMark, type TurnMarkState } from "./turn-mark.ts";
import { textOfContent } from "./window-facts.ts";

/** A turn as the caller gets it: text and stop reason are those of its last reply. What is held back is no text either. */
export function finishedTurn(parts: Omit<Turn, "text" | "stopReason">, holdBack: HoldBack | null): Turn {
  const reply = parts.messages.findLast((message): message is AssistantMessage => message.role === "assistant");
  const text = textOfContent(reply?.content);
  const isHeldBack = holdBack?.(text, true) ?? false;
  return { ...parts, text: isHeldBack ? "" : text, stopReason: reply?.stopReason ?? null };
}

/** What the log knows of a turn that was begun with an idempotency key. */
export interface KeyedTurn {
  /** Null when it did not end well, and has to be gone on with. */
  readonly turn: Turn | null;
  /** Its own id and those of the turns that went on with it. */
  readonly turnIds: ReadonlySet<string>;
}

/** Reads what a turn, and those that resumed it, put into the log. */
export async function findKeyedTurn(
  log: SessionLog,
  {
    turnId,
    firstSeq,
    holdBack,
  }: { readonly turnId: string; readonly firstSeq: number; readonly holdBack: HoldBack | null },
): Promise<KeyedTurn> {
  const turnIds = new Set([turnId]);
  const messages: Message[] = [];
  const calls: CallFacts[] = [];
  let state: TurnMarkState = "open";
  let denial: SendDenial | null = null;
  let isInside = false;
  for await (const page of log.store.read(log.ref, { afterSeq: firstSeq - 1 })) {
    for (const { record, side } of page.records) {
      const mark = readTurnMark(record);
      if (mark?.resumes !== undefined && turnIds.has(mark.resumes)) turnIds.add(mark.turnId);
      if (mark !== null) {
        isInside = mark.state === "open" && turnIds.has(mark.turnId);
        if (turnIds.has(mark.turnId)) ({ state, denial = null } = mark);
      }
      const part = readCallPart(record);
      if (part?.part === 1 && turnIds.has(part.call.turnId)) calls.push(part.call);
      if (isInside && !side && record.type === "message") messages.push(record["message"] as Message);
    }
  }
  const parts = { turnId, ref: log.ref, messages, calls, usage: usageOf(calls), gauge: gaugeNow(log), replayed: true };
  const outcome: TurnMarkState = state;
  const isOver = outcome === "done" || outcome === "step-limit" || outcome === "denied";
  return { turn: isOver ? finishedTurn({ ...parts, outcome, denial }, holdBack) : null, turnIds };
}

function usageOf(calls: readonly CallFacts[]): Usage | null {
  const actuals = calls.flatMap(({ actual }) => (actual === null ? [] : [actual]));
  const sum = (at: number): number => actuals.reduce((total, actual) => total + (actual[at] ?? 0), 0);
  return actuals.length === 0 ? null : { input: sum(0), output: sum(1), cacheRead: sum(2), cacheWrite: sum(3) };
}

function gaugeNow({ facts, entry }: SessionLog): Gauge {
  const tokens = facts.measured?.occupancyTokens ?? 0;
  const source = facts.measured === null ? "heuristic" : "actual";
  return gaugeOf(
    { tokens, lowTokens: tokens, highTokens: tokens, source },
    { windowTokens: entry.contextTokens ?? null },
  );
}
