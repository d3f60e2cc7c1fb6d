import type { Context } from "./build-context.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import type { OmittedRange } from "./omitted-ranges.ts";
import { WindowCutter } from "./window-cutter.ts";

export interface ContextLimit {
  /** The most tokens the messages may take by `countTokens`. @default no limit */
  readonly maxTokens?: number;
  /** Tokens of one message. Asked once for each; wanted with `maxTokens`. */
  readonly countTokens?: (message: NeutralMessage) => number;
  /** The most messages. @default no limit */
  readonly maxMessages?: number;
  /**
   * What stays of the limit when it is met. The less, the longer the beginning then stays where it is, which is what a
   * provider's prompt cache needs. @default 0.7
   */
  readonly keepShare?: number;
  /** Whether the first request of the conversation stays in any case. @default false */
  readonly pinFirstRequest?: boolean;
  /** The cut that the last request had: it stands until the limit is met again, whatever is counted now. @default none */
  readonly recorded?: WindowCut | null;
}

/** Where a context was cut, by the seq of records. */
export interface WindowCut {
  /** The first message that stays in its place. */
  readonly fromSeq: number;
  /** The message with which the limit was met: what came after it was written with this beginning. */
  readonly metAtSeq: number;
  /** The request that stays although it lies before the cut; null where the cut lies before a turn. */
  readonly requestSeq: number | null;
}

/** A context that was cut to a limit. */
export interface LimitedContext extends Context {
  /** null when nothing had to go, nor ever had. Kept by whoever sends it, and given back for every later call. */
  readonly cut: WindowCut | null;
}

/**
 * Leaves the oldest messages out. The cut lies before a user message, or inside the newest turn before a reply, whose
 * request then stays. Where it lies follows from the messages up to the one that met the limit, so two calls with the
 * same limit have the same beginning until the limit is met again. A summary always stays.
 */
export function limitContext(context: Context, limit: ContextLimit): LimitedContext {
  const cutter = new WindowCutter(limit, context.messages);
  for (const message of context.messages) cutter.take(message);
  return withCut(context, cutter);
}

/** The context with what a cutter that took its messages leaves of them. */
export function withCut(context: Context, cutter: WindowCutter): LimitedContext {
  const cut = cutter.cut();
  if (cut === null) return { ...context, cut };
  const kept = new Set(cutter.keptPlaces());
  const messages = cutter.kept();
  return {
    ...context,
    messages,
    recordsInContext: messages.length,
    omitted: withOmitted(context, kept),
    cut,
  };
}

function withOmitted(context: Context, kept: ReadonlySet<number>): readonly OmittedRange[] {
  const ranges: OmittedRange[] = [...context.omitted];
  let open: { fromSeq: number; toSeq: number; reason: "window" } | null = null;
  for (const [index, { seq }] of context.messages.entries()) {
    if (kept.has(index)) {
      open = null;
    } else if (open === null) {
      open = { fromSeq: seq, toSeq: seq, reason: "window" };
      ranges.push(open);
    } else {
      open.toSeq = seq;
    }
  }
  return ranges.toSorted((one, other) => one.fromSeq - other.fromSeq);
}
