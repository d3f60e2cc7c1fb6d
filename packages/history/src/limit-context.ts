import { assertKnownOptions, runSteps, type Steps } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import type { OmittedRange } from "./omitted-ranges.ts";
import { limitTable, WindowCutter, type ContextLimit, type WindowCut } from "./window-cutter.ts";

/** A context that was cut to a limit. */
export interface LimitedContext extends Context {
  /** null when nothing had to go, nor ever had. Kept by whoever sends it, and given back for every later call. */
  readonly cut: WindowCut | null;
}

/**
 * Leaves the oldest messages out. The cut lies before a user message, or inside the newest turn before a reply, whose
 * request then stays. Its place depends only on the messages up to the one that reached the limit. So two calls with
 * the same limit have the same start until the limit is reached again. A summary always stays.
 */
export function limitContext(context: Context, limit: ContextLimit): LimitedContext {
  return runSteps(limitSteps(context, limit));
}

/** What `limitContext` gives, a message a step. */
export function* limitSteps(context: Context, limit: ContextLimit): Steps<LimitedContext> {
  assertKnownOptions<ContextLimit>("limitContext", limit, limitTable, "limit");
  const cutter = new WindowCutter(limit, context.messages);
  for (const message of context.messages) {
    cutter.take(message);
    yield;
  }
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
