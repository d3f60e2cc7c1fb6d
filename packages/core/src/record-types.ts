/** OpenClaw, pi or Throughline gives a meaning to these types of the lines after the header. */
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

/**
 * Returns whether this version knows the meaning of a record's type, the header's included. `custom` counts as known,
 * whatever it holds.
 */
export function isKnownRecordType(type: string): boolean {
  return type === "session" || wrappedTypes.has(type);
}
