import type { SourcedRecord } from "@throughline/core/internal";
import {
  derivedFromOf,
  isFields,
  parsedFields,
  sourceFormatOf,
  isTombstone,
  throughlineKind,
  type Fields,
} from "@throughline/core/internal";
import { walkBranch } from "@throughline/history";

export interface LineUnit {
  readonly first: SourcedRecord;
  readonly records: SourcedRecord[];
  /**
   * The value is the line as the program wrote it. Null means that the log lacks a part of the line, or that an edit
   * changed it.
   */
  value: Fields | null;
}

/** Such a record holds a part of a line that is longer than a record may be. */
export const pieceType = "claude-code.piece";

export interface LineUnits {
  readonly units: readonly LineUnit[];
  readonly byRecord: ReadonlyMap<string, LineUnit>;
  /** When Claude Code wrote every record on the branch, its lines can be returned unchanged. */
  readonly isAllNative: boolean;
}

/** A context shows records of these types, or they change what it shows. */
const contextTypes: ReadonlySet<string> = new Set([
  "message",
  "custom_message",
  "branch_summary",
  "compaction",
  "context_edit",
  "custom",
  "reset",
]);

/** Lines that were redacted or edited lose their original value, because returning it would undo the change. */
export function lineUnits(records: readonly SourcedRecord[], headId: string | null): LineUnits {
  const byRecord = new Map<string, LineUnit>();
  for (const stored of records) {
    if (sourceFormatOf(stored.record) !== "claude-code") continue;
    const from = derivedFromOf(stored.record);
    const unit = from === null ? firstOf(stored) : byRecord.get(from.id);
    if (unit === undefined || unit === null) continue;
    unit.records.push(stored);
    byRecord.set(stored.id, unit);
  }
  const units = [...new Set(byRecord.values())];
  for (const unit of units) unit.value = valueOf(unit);
  const { path } = walkBranch(records, headId);
  for (const { id, record } of records) if (isTombstone(record)) discard(byRecord.get(unitIdOf(id)));
  let isAllNative = true;
  for (const { id, type, record } of path) {
    const target = editTarget(record);
    if (target !== undefined) discard(byRecord.get(target));
    if (contextTypes.has(type) && (byRecord.get(id)?.value ?? null) === null) isAllNative = false;
  }
  return { units, byRecord, isAllNative };
}

function firstOf(stored: SourcedRecord): LineUnit | null {
  const isOwn = typeof stored.source === "string" && !stored.isSourceCanonical;
  return isOwn || typeof stored.record["pieces"] === "number" ? { first: stored, records: [], value: null } : null;
}

function valueOf({ first, records }: LineUnit): Fields | null {
  const { pieces } = first.record;
  if (typeof pieces !== "number") return parsedFields(first.source as string);
  const texts = records.flatMap(({ record: { customType, data } }) =>
    customType === pieceType && isFields(data) && typeof data["text"] === "string" ? [data["text"]] : [],
  );
  return texts.length === pieces ? parsedFields(texts.join("")) : null;
}

function discard(unit: LineUnit | undefined): void {
  if (unit !== undefined) unit.value = null;
}

/** A redacted record may be a derived record, whose id begins with the id of the line. */
function unitIdOf(id: string): string {
  return id.replace(/~d[1-9][0-9]{0,8}$/, "");
}

/**
 * Returns the record that another program edited. Edits by a compaction of Claude Code leave the original line valid.
 */
function editTarget(record: SourcedRecord["record"]): string | undefined {
  if (sourceFormatOf(record) === "claude-code") return undefined;
  const { data } = record;
  const target =
    record.type === "context_edit"
      ? record["targetId"]
      : throughlineKind(record) === "edit" && isFields(data)
        ? data["targetId"]
        : undefined;
  return typeof target === "string" ? target : undefined;
}
