import { assertKnownOptions, runSteps, type Steps } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import type { OmittedRange } from "./omitted-ranges.ts";
import { limitTable, WindowCutter, type ContextLimit, type WindowCut } from "./window-cutter.ts";

/** Holds a context that was cut to a limit. */
export interface LimitedContext extends Context {
  /**
   * States the cut; null if the limit was never met. The caller records it with the call and passes it back for every
   * later call.
   */
  readonly cut: WindowCut | null;
}

/**
 * Drops the oldest messages to meet a limit. The cut lies before a user message. If the newest turn alone is too large,
 * the cut lies before a reply in it, and the turn's request stays. The position of the cut depends only on the messages
 * up to the one that met the limit. Two calls with the same limit therefore have the same start until the limit is met
 * again. A summary always stays.
 */
export function limitContext(context: Context, limit: ContextLimit): LimitedContext {
  return runSteps(limitSteps(context, limit));
}

/** Limits a context like `limitContext`, one message per step. */
export function* limitSteps(context: Context, limit: ContextLimit): Steps<LimitedContext> {
  assertKnownOptions<ContextLimit>("limitContext", limit, limitTable, "limit");
  const cutter = new WindowCutter(limit, context.messages);
  for (const message of context.messages) {
    cutter.take(message);
    yield;
  }
  return withCut(context, cutter);
}

/** Builds the limited context. The cutter must already have taken all messages of the context. */
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
