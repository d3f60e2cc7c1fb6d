// What every store shares, so that no rule of the contract is written twice. For implementers, not for users.
export { draftsFingerprint, lineBytes, linkRecords, prepareDrafts, serializeRecord } from "./prepare-drafts.ts";
export type { LinkedRecord, PreparedRecord, PrepareOptions } from "./prepare-drafts.ts";
export { isColumnText } from "./column-text.ts";
export { endOfValue } from "./end-of-value.ts";
export { redactionTombstone } from "./redact-records.ts";
export { isNestedDeeper, maxNesting } from "./nesting.ts";
export { refused } from "./refused.ts";
export { givenEntry, nextUpdatedAtMs, ownEntry, patchEntry } from "./session-entry.ts";
export { assertAgentId, assertNamespace, assertSessionId, quote } from "./session-id.ts";
export { sessionNotFound } from "./open-session.ts";
export { sessionRefText } from "./session-ref.ts";
export { defaultStoreLimits } from "./store-capabilities.ts";
export { assertBatchSize, headAfterAppend, writeDurability } from "./check-append.ts";
export { listPage, planList } from "./list-page.ts";
export type { ListedSession, ListPlan, ListPosition } from "./list-page.ts";
export { createPayloadCoder } from "./payload-coder.ts";
export type { PayloadCoder, PayloadOwner } from "./payload-coder.ts";
export { assertNotForgotten, defaultIdempotency, RememberedAppends } from "./remembered-appends.ts";
