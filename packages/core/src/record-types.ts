/** Types of the lines behind the header that OpenClaw and pi have a meaning for, and our own. */
export const wrappedTypes: ReadonlySet<unknown> = new Set([
  "message",
  "compaction",
  "branch_summary",
  "custom",
  "custom_message",
  "model_change",
  "thinking_level_change",
  "label",
  "session_info",
  "usage",
  "context_edit",
  "leaf",
  "reset",
  "checkpoint",
]);

/** Whether the meaning of a record's type is known, the header's included. `custom` is, whatever it holds. */
export function isKnownRecordType(type: string): boolean {
  return type === "session" || wrappedTypes.has(type);
}
