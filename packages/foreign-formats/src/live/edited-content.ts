import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, throughlineKind, type Fields } from "@throughline/core/internal";

/**
 * The target may be edited by a `context_edit` or by a Throughline edit. Null means that the record edits no other
 * record.
 */
export function editIn(
  record: SourcedRecord["record"],
): { readonly targetId: unknown; readonly replacement: unknown } | null {
  const { type, data } = record;
  const fields = type === "context_edit" ? record : throughlineKind(record) === "edit" && isFields(data) ? data : null;
  return fields === null ? null : { targetId: fields["targetId"], replacement: fields["replacement"] };
}

/**
 * An edit replaces all blocks of a message, so the next edit must start from the blocks of the last edit on the branch.
 */
export function editedContent(stored: SourcedRecord | undefined, path: readonly SourcedRecord[]): readonly unknown[] {
  const edit = path.map(({ record }) => editIn(record)).findLast((one) => one !== null && one.targetId === stored?.id);
  const message = edit === undefined ? stored?.record["message"] : edit?.replacement;
  return listOf(isFields(message) ? (message as Fields)["content"] : null);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}
