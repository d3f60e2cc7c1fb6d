import type { StoredRecord } from "@throughline/core";
import type { Context } from "./build-context.ts";
import type { OmittedRange } from "./omitted-ranges.ts";

export function entryWindowTokens(contextTokens: unknown): number | null {
  return typeof contextTokens === "number" && Number.isFinite(contextTokens) && contextTokens > 0
    ? contextTokens
    : null;
}

/**
 * Returns the ranges that a context leaves out, extended to the records before the window, because those records were
 * not read.
 */
export function omittedWithWindow(
  { omitted, summaryId }: Context,
  window: readonly StoredRecord[],
): readonly OmittedRange[] {
  const toSeq = (window[0]?.seq ?? 1) - 1;
  const [first] = omitted;
  if (toSeq === 0) return omitted;
  const reason = summaryId === null ? "reset" : "summarized";
  if (first?.fromSeq !== toSeq + 1 || first.reason !== reason) return [{ fromSeq: 1, toSeq, reason }, ...omitted];
  return [{ ...first, fromSeq: 1 }, ...omitted.slice(1)];
}
