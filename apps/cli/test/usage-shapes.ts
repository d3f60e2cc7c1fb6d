import { anything, count, kind, list, listOf, number, object, or, text, type Shape } from "./shape-checks.ts";

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

/** What `usage` and `stats --activity` print. */
const activityTotals: Shape = {
  sessions: count,
  messages: count,
  toolCalls: count,
  failedTools: count,
  costUsd: or(number),
  unpricedCalls: count,
};

const activeSession: Shape = {
  agentId: text,
  key: text,
  sessionId: text,
  name: text,
  program: text,
  folder: or(text),
  messages: count,
  costUsd: or(number),
  unpricedCalls: count,
};

export const usageShapes: Readonly<Record<string, Shape>> = {
  usage: { ...kind, group: object({ session: text, model: or(text) }), name: or(text), ...usageTotals },
  usageTotal: { ...kind, ...usageTotals, unpricedModels: list, pricesAsOf: text },
  usageBlock: { ...kind, startMs: count, endMs: count, ...usageTotals },
  usageStatus: { ...kind, model: or(text), sessionUsd: or(number), today: object(usageTotals), block: or(anything) },
  activity: {
    ...kind,
    ...activityTotals,
    places: listOf({ program: text, folder: or(text), ...activityTotals }),
    longest: listOf(activeSession),
    mostExpensive: listOf(activeSession),
    days: listOf({ day: text, sessions: count, messages: count, toolCalls: count }),
  },
};

/** What the turns of a session used. */
export const spendShape: Shape = {
  calls: count,
  input: count,
  output: count,
  cacheRead: count,
  cacheWrite: count,
  cacheWrite1h: count,
  reasoning: count,
  costUsd: or(number),
};
