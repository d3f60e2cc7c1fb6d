/** A session as the entries log of a JSON Lines store of ours has it; `docs/formats/records.md` describes the log. */
export interface OwnEntry {
  readonly sessionId: string;
  readonly key: string;
  readonly fileName: string;
  readonly isArchived: boolean;
  readonly revision: number;
  readonly entry: Readonly<Record<string, unknown>>;
  /** Where an append without records left the head, and behind which record. */
  readonly savedHead: { readonly lastSeq: number; readonly headId: string | null } | null;
}

/** The newest row of every session. Lines that cannot be read are counted; a coded entry (`isCoded`) needs its store. */
export function readOwnEntries(text: string): {
  readonly entries: readonly OwnEntry[];
  readonly unreadableLines: number;
  readonly isCoded: boolean;
} {
  const rows = new Map<string, OwnEntry>();
  let unreadableLines = 0;
  let isCoded = false;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const change = parseObject(line);
    if (change === null || change["v"] !== 1) {
      unreadableLines++;
      continue;
    }
    const also = Array.isArray(change["also"]) ? (change["also"] as unknown[]) : [];
    for (const value of [...(change["sessionId"] === undefined ? [] : [change]), ...also]) {
      isCoded ||= isFields(value) && value["entryEnc"] !== undefined;
      const row = rowOf(value);
      if (row !== null) rows.set(row.sessionId, row);
    }
    for (const sessionId of Array.isArray(change["removed"]) ? (change["removed"] as unknown[]) : [])
      rows.delete(String(sessionId));
  }
  return { entries: [...rows.values()], unreadableLines, isCoded };
}

function rowOf(value: unknown): OwnEntry | null {
  if (!isFields(value)) return null;
  const { sessionId, key, fileName, isArchived, revision, entry } = value;
  if (typeof sessionId !== "string" || typeof key !== "string" || typeof fileName !== "string" || !isFields(entry))
    return null;
  return {
    sessionId,
    key,
    fileName,
    isArchived: isArchived === true,
    revision: typeof revision === "number" ? revision : 0,
    entry,
    savedHead: savedHeadOf(value["savedHead"]),
  };
}

function savedHeadOf(value: unknown): OwnEntry["savedHead"] {
  if (!isFields(value) || typeof value["lastSeq"] !== "number") return null;
  const headId = value["headId"];
  return typeof headId === "string" || headId === null ? { lastSeq: value["lastSeq"], headId } : null;
}

function parseObject(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
