// These exports serve the other packages of Throughline. They may change in any release and are not part of the public
// interface.
export { freeRef, sessionExists } from "./create-session.ts";
export { MemoryBudget, withinMemory } from "./memory-budget.ts";
export { blocksText, recordRole } from "./record-text.ts";
export { locateSession, matchSession, newSessionRef, refsOf, sessionCandidate } from "./resolve-session.ts";
export type { SessionCandidate, SessionLocation } from "./resolve-session.ts";
export { scanRecords } from "./scan-records.ts";
export { mostIndexedHits } from "./search-hits.ts";
export { isBoundary, isChosen } from "./select-records.ts";
export type { TailSelection } from "./select-records.ts";
export { givenName, modelName, percentOf, sessionLabel, sessionName, sessionProgram } from "./session-row.ts";
export { isTerminalKey, terminalSessionKey } from "./terminal-keys.ts";
export { entryWindowTokens, omittedWithWindow } from "./window-facts.ts";
