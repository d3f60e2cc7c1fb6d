export {
  listSessions,
  matchSession,
  refsOf,
  resolveSession,
  type ResolveSessionOptions,
  type SessionCandidate,
  type SessionMatch,
  type SessionScope,
} from "./resolve-session.ts";
export { sessionTotals, type SessionTotals } from "./session-totals.ts";
export { modelName, percentOf, sessionLabel, sessionRow, type SessionRow } from "./session-row.ts";
