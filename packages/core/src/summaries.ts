export { auditSummary } from "./audit-summary.ts";
export type { AuditOptions, AuditProblem } from "./audit-summary.ts";
export { endOfValue } from "./end-of-value.ts";
export { Deadline } from "./deadline.ts";
export { untilAborted } from "./until-aborted.ts";
export {
  isOutdatedSummary,
  outdatedSummaryIds,
  proseOf,
  summaryDetailsHeading,
  withheldSummary,
} from "./summary-parts.ts";
export { pathArgumentNames, writeToolNames } from "./file-tool-names.ts";
export { toolNameRule, toolsByWireName, wireToolName, type ToolNameRule } from "./tool-names.ts";
export { isFlushMessage } from "./flush-message.ts";
