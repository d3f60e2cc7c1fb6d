import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, throughlineKind, type Fields } from "@throughline/core/internal";

/** What a record that edits another one changes, and what it puts there; null for every other record. */
export function editIn(
  record: SourcedRecord["record"],
): { readonly targetId: unknown; readonly replacement: unknown } | null {
  const { type, data } = record;
  const fields = type === "context_edit" ? record : throughlineKind(record) === "edit" && isFields(data) ? data : null;
  return fields === null ? null : { targetId: fields["targetId"], replacement: fields["replacement"] };
}

/**
 * The blocks of a message as the last edit on its branch left them. A next edit replaces all of them, so that it begins with
 * these.
 */
export function editedContent(stored: SourcedRecord | undefined, path: readonly SourcedRecord[]): readonly unknown[] {
  const edit = path.map(({ record }) => editIn(record)).findLast((one) => one !== null && one.targetId === stored?.id);
  const message = edit === undefined ? stored?.record["message"] : edit?.replacement;
  return listOf(isFields(message) ? (message as Fields)["content"] : null);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}
