import { anything, count, flag, kind, or, text, type Shape } from "./shape-checks.ts";

const ofSession: Shape = { ...kind, key: text, sessionId: text };

/** What `approvals` prints. */
export const approvalShapes: Readonly<Record<string, Shape>> = {
  approval: {
    ...ofSession,
    name: text,
    callId: text,
    tool: text,
    arguments: anything,
    facts: anything,
    askedAtMs: or(count),
    expiresAtMs: or(count),
    turnId: text,
  },
  decision: { ...ofSession, callId: text, isAllowed: flag, words: or(text), replayed: flag },
};
