import { anything, count, kind, list, number, object, or, text, type Shape } from "./shape-checks.ts";

const usageTotals: Shape = {
  calls: count,
  seconds: count,
  input: count,
  cacheRead: count,
  cacheWrite: count,
  output: count,
  reasoning: count,
  costUsd: or(number),
  statedUsd: number,
  unpricedCalls: count,
  doubtfulCalls: count,
};

/** What `usage` prints. */
export const usageShapes: Readonly<Record<string, Shape>> = {
  usage: { ...kind, group: object({ session: text, model: or(text) }), name: or(text), ...usageTotals },
  usageTotal: { ...kind, ...usageTotals, unpricedModels: list, pricesAsOf: text },
  usageBlock: { ...kind, startMs: count, endMs: count, ...usageTotals },
  usageStatus: { ...kind, model: or(text), sessionUsd: or(number), today: object(usageTotals), block: or(anything) },
};
