import { kind, sessionNames, count, number, object, one, or, text, type Shape } from "./shape-checks.ts";
import { spendShape } from "./usage-shapes.ts";

/** What `sessions` prints. */
export const sessionShape: Shape = {
  ...kind,
  agentId: text,
  key: text,
  sessionId: text,
  ...sessionNames,
  state: one("active", "archived"),
  archiveId: or(text),
  recordCount: count,
  messageCount: count,
  contextTokens: or(count),
  windowTokens: or(count),
  contextPercent: or(number),
  model: or(text),
  createdAtMs: count,
  updatedAtMs: count,
  incomplete: or(one("copy", "fork", "import")),
  pendingApprovals: count,
  spend: or(object(spendShape)),
};

/** What `search` prints. */
export const hitShape: Shape = {
  ...kind,
  key: text,
  sessionId: text,
  seq: count,
  id: text,
  role: or(text),
  tsMs: or(count),
  score: number,
  snippet: text,
  highlights: (value) =>
    Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(count)),
};
