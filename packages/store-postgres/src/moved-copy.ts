import type { SessionEntry } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";

/** The field in the entry of a session that was moved to another schema; the row stays behind, archived. */
const movedField = "movedTo";

/** What the entry of a moved session says of the move. */
export interface MovedCopy {
  /** Under which archive the session stood; empty for an active one. */
  readonly archiveId: string;
  /** Whether the target is known to have it. Else it may still be on its way, and the next run brings it. */
  readonly isThere: boolean;
  readonly note: Fields;
}

/** Null for a session that was not moved away. */
export function movedCopyOf(entry: SessionEntry): MovedCopy | null {
  const note: unknown = entry[movedField];
  if (!isFields(note) || typeof note["archiveId"] !== "string") return null;
  return { archiveId: note["archiveId"], isThere: note["isThere"] === true, note };
}

export function withNote(entry: SessionEntry, note: Fields): SessionEntry {
  return { ...entry, [movedField]: note };
}

export function withoutNote(entry: SessionEntry): SessionEntry {
  const { [movedField]: _moved, ...rest } = entry;
  return rest as SessionEntry;
}
