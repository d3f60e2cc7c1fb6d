import { type Fields, isFields, quote } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import type { FindingLog } from "./finding-log.ts";
import { isFlatRecord, readFlatMessage, type ToolNames } from "./flat-record.ts";
import { isoTime, readTimeMs } from "./read-time.ts";
import { isUsableRecordId, placeId, type RecordIdBook } from "./record-id-book.ts";

export interface UpgradeContext {
  readonly headId: string | null;
  readonly lastTimestamp: string;
  /** The header states the version; null without a header. */
  readonly version: number | null;
  readonly place: { readonly line: number; readonly byteOffset: number };
}

/** These fields name another record of the session, so they follow when an id changes. */
const references: readonly string[] = ["firstKeptEntryId", "targetId", "fromId", "appendParentId"];

/**
 * Converts a line's JSON to a version 3 record. A line that is in version 3 already gives the same object, so that
 * callers can detect the difference.
 */
export class RecordUpgrade {
  private readonly ids: RecordIdBook;
  private readonly log: FindingLog;
  private readonly toolNames: ToolNames = new Map();
  /** Maps lines to ids of main records. Old compactions name their first kept record by its line. */
  private readonly mainIds: (string | undefined)[] = [];
  /** Holds parents that no line so far has defined. Those that remain at the end are missing. */
  private readonly missingParents = new Map<
    string,
    { readonly line: number; readonly byteOffset: number; readonly recordId: string }
  >();

  constructor(ids: RecordIdBook, log: FindingLog) {
    this.ids = ids;
    this.log = log;
  }

  read(value: Fields, context: UpgradeContext): SessionRecord {
    const parent = this.parentOf(value, context);
    const id = this.idOf(value, context);
    const parentId = this.checkedParent(parent, id, context);
    const timestamp = timestampOf(value, context.lastTimestamp);
    const body = this.bodyOf(value, id, context);
    const isSame =
      body === value && value["id"] === id && value["parentId"] === parentId && value["timestamp"] === timestamp;
    if (isSame) return value as SessionRecord;
    const { type, id: _id, parentId: _parentId, timestamp: _timestamp, ...fields } = body;
    return { type: String(type), id, parentId, timestamp, ...fields };
  }

  /** The caller must call this after each line, because the record may be the missing parent of an earlier line. */
  settle(id: string, side: boolean, line: number): void {
    this.missingParents.delete(id);
    if (!side) this.mainIds[line - 1] = id;
  }

  finish(): void {
    for (const [parentId, place] of this.missingParents) {
      this.log.add("ORPHAN_PARENT", `The parent ${quote(parentId)} is nowhere in the file.`, place);
    }
    this.missingParents.clear();
  }

  private parentOf(value: Fields, context: UpgradeContext): string | null {
    const { parentId } = value;
    if (parentId === null) return null;
    if (typeof parentId === "string") return this.ids.resolve(parentId);
    const isOldVersion = context.version !== null && context.version < 2;
    // Version 1 and flat records never have parents. One finding for the whole file says so, and no finding follows for
    // each record.
    if (!isOldVersion && !isFlatRecord(value) && value["id"] !== undefined) {
      this.log.add("PARENT_MISSING", "The record names no parent.", { ...context.place, recordId: idText(value) });
    }
    return context.headId;
  }

  private idOf(value: Fields, context: UpgradeContext): string {
    const own = value["id"];
    if (isUsableRecordId(own)) {
      const id = this.ids.claim(own);
      if (id !== own)
        this.log.add("DUPLICATE_ID", `The id ${quote(own)} was there before; this record goes by ${quote(id)}.`, {
          ...context.place,
          recordId: id,
          repaired: true,
        });
      return id;
    }
    if (own !== undefined)
      this.log.add("RECORD_INVALID", `The id ${quote(own)} cannot be used; the record gets one made of its place.`, {
        ...context.place,
        repaired: true,
      });
    else if (!isFlatRecord(value))
      this.log.addOnce("VERSION_MIGRATED", "Records without ids get ids made of their place.", context.place);
    const id = this.ids.claim(placeId(context.place.line));
    if (typeof own === "string") this.ids.rename(own, id);
    return id;
  }

  private checkedParent(parentId: string | null, id: string, context: UpgradeContext): string | null {
    if (parentId === null) return null;
    if (parentId === id) {
      this.log.add("SELF_PARENT", "The record names itself as its parent.", {
        ...context.place,
        recordId: id,
        repaired: true,
      });
      return context.headId;
    }
    if (!this.ids.has(parentId)) this.missingParents.set(parentId, { ...context.place, recordId: id });
    return parentId;
  }

  private bodyOf(value: Fields, id: string, context: UpgradeContext): Fields {
    if (isFlatRecord(value)) return this.flatBody(value, id, context);
    let body = value;
    const message = value["message"];
    if (value["type"] === "message" && isFields(message) && message["role"] === "hookMessage") {
      body = { ...body, message: { ...message, role: "custom", customType: message["customType"] ?? "hook" } };
    }
    if (
      value["type"] === "compaction" &&
      value["firstKeptEntryIndex"] !== undefined &&
      value["firstKeptEntryId"] === undefined
    ) {
      body = this.withFirstKeptId(body, id, context);
    }
    return this.withResolvedReferences(body);
  }

  private flatBody(value: Fields, id: string, context: UpgradeContext): Fields {
    this.log.addOnce("RECORD_FLAT", "The file holds flat records.", { ...context.place, recordId: id });
    const { message, conflict } = readFlatMessage(value, this.toolNames);
    if (conflict !== null)
      this.log.add("RECORD_INVALID", `The record contradicts itself: ${conflict}.`, {
        ...context.place,
        recordId: id,
        repaired: true,
      });
    return { type: "message", message };
  }

  /**
   * The index counts the lines of the file, including the header. When that line is not a main record, the next main
   * record counts.
   */
  private withFirstKeptId(body: Fields, id: string, context: UpgradeContext): Fields {
    const { firstKeptEntryIndex, ...fields } = body;
    const from =
      typeof firstKeptEntryIndex === "number" && firstKeptEntryIndex >= 0
        ? Math.trunc(firstKeptEntryIndex)
        : Number.POSITIVE_INFINITY;
    for (let line = from; line < context.place.line - 1; line++) {
      const firstKeptEntryId = this.mainIds[line];
      if (firstKeptEntryId !== undefined) return { ...fields, firstKeptEntryId };
    }
    this.log.add(
      "COMPACTION_DANGLING",
      `The compaction keeps records from line index ${quote(firstKeptEntryIndex)} on, where none is before it.`,
      { ...context.place, recordId: id },
    );
    // A compaction that names its own id keeps no record from before it.
    return { ...fields, firstKeptEntryId: id };
  }

  private withResolvedReferences(body: Fields): Fields {
    let resolved = body;
    for (const field of references) {
      const named = body[field];
      if (typeof named !== "string") continue;
      const meant = this.ids.resolve(named);
      if (meant !== named) resolved = { ...resolved, [field]: meant };
    }
    return resolved;
  }
}

function timestampOf(value: Fields, lastTimestamp: string): string {
  const { timestamp, ts } = value;
  if (typeof timestamp === "string") return timestamp;
  const message = value["message"];
  const ms =
    readTimeMs(timestamp) ?? readTimeMs(ts) ?? readTimeMs(isFields(message) ? message["timestamp"] : undefined);
  return ms === null ? lastTimestamp : isoTime(ms);
}

function idText(value: Fields): string | null {
  return typeof value["id"] === "string" ? value["id"] : null;
}
