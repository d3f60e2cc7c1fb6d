import type { SessionEntry } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";

/** This field marks the entry of a session that was moved to another schema. The row stays behind, archived. */
const movedField = "movedTo";

export interface MovedCopy {
  /** States the archive id of the session before the move. It is empty for an active session. */
  readonly archiveId: string;
  /** States whether the target surely has the session. Otherwise the next run copies it. */
  readonly isThere: boolean;
  readonly note: Fields;
}

/** Returns null for a session that was not moved away. */
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
