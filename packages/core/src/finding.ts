/** Describes a problem that was found by reading. A finding is never thrown, because the readable part was read. */
export interface Finding {
  /** States the code, which is a key of `findingCodes`. */
  readonly code: FindingCode;
  /** States the severity from the code's row in `findingCodes`. */
  readonly severity: FindingSeverity;
  /** Names the file or server that was read; null when the finding has no such location. */
  readonly path: string | null;
  /** States the key of the session; null when the finding concerns no single session. */
  readonly key: string | null;
  /** States the line in the file, from 1; null without a line. */
  readonly line: number | null;
  /** States where the line starts in the file, in bytes; null when the offset is unknown. */
  readonly byteOffset: number | null;
  /** States the id of the record; null when the finding concerns no single record. */
  readonly recordId: string | null;
  /** States in one sentence for people what was found, and where. */
  readonly message: string;
  /** States for people what to do next. */
  readonly remedy: string;
  /** States whether the problem was repaired: in memory by a read, on disk by a repair. */
  readonly repaired: boolean;
}

/**
 * Rates a finding. `info`: nothing was lost. `warning`: a problem was worked around. `error`: content is lost or in
 * doubt.
 */
type FindingSeverity = "info" | "warning" | "error";

export interface FindingRule {
  readonly severity: FindingSeverity;
  readonly remedy: string;
}

const table = {
  BYTE_ORDER_MARK: { severity: "info", remedy: "Nothing to do: the mark is kept and skipped." },
  BATCH_INCOMPLETE: {
    severity: "warning",
    remedy: "Nothing to do: the batch was never acknowledged; a copy of its bytes is kept.",
  },
  CARRIAGE_RETURN: { severity: "info", remedy: "Nothing to do: it is read as white space, and the line is kept." },
  CHECKSUM_MISMATCH: {
    severity: "error",
    remedy: "Compare the line with a backup. Contexts still use it; copies and exports refuse it until it is repaired.",
  },
  COMPACTION_DANGLING: { severity: "warning", remedy: "The newest records are kept in its place; compact again." },
  DUPLICATE_ID: { severity: "warning", remedy: "Both records are kept; the later one goes by the id in the message." },
  DUPLICATE_TOOL_CALL: { severity: "info", remedy: "Nothing to do: the call is sent once." },
  DUPLICATE_TOOL_RESULT: { severity: "info", remedy: "Nothing to do: the first result is sent." },
  ENTRIES_RECOVERED: {
    severity: "warning",
    remedy: "Look through the entries of the sessions: what was written last may be missing in them.",
  },
  ENTRY_UNREADABLE: {
    severity: "error",
    remedy: "The session is listed from its transcript; set its entry fields again.",
  },
  ERASURE_INCOMPLETE: {
    severity: "warning",
    remedy: "Run the statement that the message names, as the owner of the tables.",
  },
  FILE_MISSING: {
    severity: "warning",
    remedy: "Put the same bytes again: the file gets the same id. Without it the model reads a line in its place.",
  },
  FILE_NOT_FOUND: {
    severity: "error",
    remedy: "Check the path, and run the command again.",
  },
  FILE_UNUSED: {
    severity: "info",
    remedy:
      "`throughline prune --unused-files 7d --yes` deletes such files that were put more than a week ago. `sessions.files.delete(id)` deletes one.",
  },
  FILE_UNREADABLE: {
    severity: "error",
    remedy: "Check the permissions of the file and the room on its disk, and run the command again.",
  },
  FOLDER_EXPOSED: {
    severity: "warning",
    remedy: "Take the access away from others: chmod 700 on the folder, as its owner.",
  },
  FILE_SYSTEM_REMOTE: {
    severity: "warning",
    remedy: "Keep the store on a local disk: locks and the log are not safe across hosts; copy it there with a backup.",
  },
  HEAD_UNKNOWN: { severity: "warning", remedy: "The newest record on the main line is taken as the head." },
  HEADER_INVALID: { severity: "warning", remedy: "Nothing to do: a header is made up in memory, the line is kept." },
  HEADER_MISMATCH: { severity: "info", remedy: "Nothing to do: the file name decides." },
  HEADER_MISSING: {
    severity: "warning",
    remedy: "Nothing to do: a header is made up in memory; the file is not touched.",
  },
  INDEX_REBUILT: {
    severity: "info",
    remedy: "Nothing to do: it is made again from the sessions themselves; the old file is kept beside it.",
  },
  INDEX_UNREADABLE: { severity: "error", remedy: "The sessions are found by their files; the index is kept as it is." },
  LINE_MALFORMED: {
    severity: "error",
    remedy: "The line is kept in its place and left out of the context; doctor --repair writes a clean copy.",
  },
  LINE_TOO_LONG: { severity: "error", remedy: "The line is kept and left out. No setting raises the limit of 16 MiB." },
  LOG_DAMAGED: {
    severity: "error",
    remedy:
      "What was written behind the damage is only in the log that is kept: ask the writers what is missing at the end of the sessions, then remove that file.",
  },
  LOG_MISSING: {
    severity: "error",
    remedy:
      "Ask the writers what is missing at the end of the sessions, or restore a newer backup; then remove the file that is named.",
  },
  LOG_OVERSIZED: {
    severity: "warning",
    remedy: "End the reader that is named: it keeps the log from being written back.",
  },
  MESSAGES_REFUSED: {
    severity: "warning",
    remedy:
      "Correct the request where the message says; one that a history was rendered into is a fault to be reported.",
  },
  ORIGIN_MISSING: {
    severity: "warning",
    remedy:
      "Nothing to do for a context: the record is read as it is. Restore the other one from a backup, or import its source again.",
  },
  ORPHAN_PARENT: {
    severity: "warning",
    remedy: "The record is attached to the one before it, so that nothing above is hidden.",
  },
  PARENT_CYCLE: { severity: "warning", remedy: "The walk stops where it would begin again." },
  PARENT_MISSING: { severity: "info", remedy: "The record is attached to the one before it." },
  PARTIAL_STALE: {
    severity: "info",
    remedy: "Run `throughline doctor --repair`: it deletes the file. The records of the session are intact.",
  },
  RECORD_MISSING: { severity: "error", remedy: "Restore it from a backup; the records around it are read." },
  RECORD_FLAT: { severity: "info", remedy: "Nothing to do: flat records are read as messages; the line is kept." },
  RECORD_INVALID: { severity: "warning", remedy: "The record is kept and left out of the context." },
  SEARCH_INDEX_BEHIND: {
    severity: "warning",
    remedy:
      "Nothing to do for this search. End the writer that is stuck, or make room: the next search indexes the rest.",
  },
  SELF_PARENT: { severity: "warning", remedy: "The record is attached to the one before it." },
  SESSION_ERASED: {
    severity: "info",
    remedy:
      "Nothing to do: its key was destroyed on purpose. `throughline delete KEY --purge --yes` removes what is left.",
  },
  SESSION_UNINDEXED: { severity: "info", remedy: "The session goes by a key made from its id; rename it if you like." },
  SESSION_FILE_MISSING: {
    severity: "error",
    remedy: "The index names a file that is not there; restore it or remove the entry.",
  },
  SESSION_FILE_FOREIGN: { severity: "info", remedy: "The path of another machine is read by its file name." },
  SESSION_LEFT_ALONE: {
    severity: "info",
    remedy:
      "Nothing to do: what was done here stays. `throughline import FILE --key KEY` imports the source all the same.",
  },
  STORE_DAMAGED: {
    severity: "error",
    remedy: "Restore the newest backup, or repair: what can be read is written to a copy, the damaged file is kept.",
  },
  STORE_RESTORED: {
    severity: "error",
    remedy: "What was written after the backup is only in the damaged file, which is kept beside the store.",
  },
  SOURCE_UNREAD: {
    severity: "warning",
    remedy: "What the message names stays in the source; look at it with the program that wrote it.",
  },
  TAIL_CONTINUED: {
    severity: "info",
    remedy: "Nothing to do: the line is taken as it is now; what was imported of it before is kept and left out.",
  },
  TAIL_TORN: {
    severity: "warning",
    remedy: "Nothing to do: the line was never acknowledged; a copy of its bytes is kept.",
  },
  TOOL_CALL_UNANSWERED: { severity: "info", remedy: "Nothing to do: an error result is sent in its place." },
  TOOL_RESULT_ORPHAN: { severity: "info", remedy: "Nothing to do: the result is not sent." },
  TRANSCRIPT_FOREIGN: { severity: "error", remedy: "Look at it with the program that wrote it." },
  UNKNOWN_TYPE: { severity: "info", remedy: "Nothing to do: the record is kept and left out of the context." },
  VACUUM_DUE: {
    severity: "warning",
    remedy: "VACUUM (ANALYZE) the table that is named, and end the transaction that keeps autovacuum from it.",
  },
  VERSION_MIGRATED: {
    severity: "info",
    remedy: "Nothing to do: the older version is read as version 3; the file is not touched.",
  },
} as const;

/** Names one code of the table of findings. */
export type FindingCode = keyof typeof table;

export const findingCodes: Readonly<Record<FindingCode, FindingRule>> = table;

/** States the location of a finding: file, line, session or record. */
export interface FindingPlace {
  /** Names the file or server that was read. */
  readonly path?: string | null;
  /** States the key of the session. */
  readonly key?: string | null;
  /** States the line of the file, from 1. */
  readonly line?: number | null;
  /** States where the line starts in the file, in bytes. */
  readonly byteOffset?: number | null;
  /** States the id of the record. */
  readonly recordId?: string | null;
  /** States whether the problem was repaired when it was found. */
  readonly repaired?: boolean;
}

/** Creates a finding with the severity and remedy of its code. */
export function createFinding(code: FindingCode, message: string, place: FindingPlace = {}): Finding {
  const { path = null, key = null, line = null, byteOffset = null, recordId = null, repaired = false } = place;
  const { severity, remedy } = findingCodes[code];
  return { code, severity, path, key, line, byteOffset, recordId, message, remedy, repaired };
}
