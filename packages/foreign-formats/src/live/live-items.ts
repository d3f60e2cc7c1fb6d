import type { SourcedRecord } from "@throughline/core/internal";
import {
  isFields,
  derivedFromOf,
  findRecordProblem,
  sourceFormatOf,
  isTombstone,
  type Fields,
} from "@throughline/core/internal";
import { walkBranch } from "@throughline/history";
import type { ReplayTurn } from "@throughline/history/internal";
import { WrittenConversation } from "../write-conversation.ts";
import { LossLog } from "../write-losses.ts";
import { editIn } from "./edited-content.ts";
import { removedTypeOf } from "./cut-items.ts";
import type { LiveItem, LiveItemsOptions, LiveMapping, LiveSession } from "./live-format.ts";

interface Unit {
  readonly first: SourcedRecord;
  readonly records: SourcedRecord[];
  /** This record holds the item with which the program replaced the original. */
  replacedBy?: SourcedRecord;
}

export function liveItems(
  mapping: LiveMapping,
  session: LiveSession,
  { onLoss, repaired = false }: LiveItemsOptions,
): readonly LiveItem[] {
  const branch = new LiveBranch(mapping.name, session);
  if (!repaired && branch.isAllNative) return branch.units.map(nativeItem);
  const losses = new LossLog(onLoss ?? (() => {}));
  const { answerOpenCalls, holdsResults } = mapping;
  const keepsWaiting = !repaired || (answerOpenCalls !== undefined && branch.endsNative);
  const conversation = new WrittenConversation(writtenSession(session), mapping.rules, losses, { keepsWaiting });
  const writer = mapping.createWriter(session, conversation, losses);
  const turns = [...conversation.context()].flatMap((turn) => (turn === undefined ? [] : piecesOf(turn)));
  const rendersUnanswered = repaired && answerOpenCalls === undefined;
  const native = new NativeUnits(branch, turns, { holdsResults, repaired, rendersUnanswered });
  const items: LiveItem[] = [];
  let openIds: readonly string[] = [];
  const add = (values: readonly Fields[], ids: readonly string[]): void => {
    for (const [index, value] of values.entries())
      items.push({
        value,
        recordIds: index === 0 && openIds.length > 0 ? openIds : ids,
        isNative: false,
        source: null,
      });
    openIds = [];
  };
  for (const turn of turns) {
    const ids = idsOf(turn, branch);
    const units = native.unitsOf(ids);
    if (units.length === 0) {
      // The program itself creates the result of an unanswered call in its own item, so it is skipped here.
      if (!rendersUnanswered && ids.length === 0 && native.answers(turn)) continue;
      const isResult = turn.role === "user" && turn.results.length > 0;
      const foreign = isResult ? undefined : branch.path[branch.placeOf(ids[0] ?? "")];
      const before = foreign === undefined ? [] : native.before(foreign);
      if (before.length > 0 || branch.begins(ids[0])) add(writer.close(), []);
      items.push(...before.map(nativeItem));
      const values = writer.turn(turn);
      if (values.length === 0) openIds = [...openIds, ...ids];
      else add(values, ids);
      continue;
    }
    const given = native.take(units);
    if (given.length > 0) add(writer.close(), []);
    items.push(...given.map(nativeItem));
  }
  add(writer.close(), []);
  const all = [...items, ...native.rest().map(nativeItem)];
  if (!repaired || answerOpenCalls === undefined) return all;
  return all.map((item, at) => {
    const value = item.isNative ? answerOpenCalls(item.value, at === all.length - 1) : item.value;
    return value === item.value ? item : { ...item, value, isNative: false, source: null };
  });
}

function nativeItem({ first, records, replacedBy }: Unit): LiveItem {
  const source = (replacedBy ?? first).source as string;
  return { value: JSON.parse(source) as Fields, recordIds: records.map(({ id }) => id), isNative: true, source };
}

class LiveBranch {
  readonly path: readonly SourcedRecord[];
  readonly #places: ReadonlyMap<string, number>;
  readonly #firstIds: ReadonlySet<string>;
  readonly removed: ReadonlySet<string>;
  /** The list is in the order of the log. It holds the items whose every record is unchanged. */
  readonly units: readonly Unit[];
  /** True means that the program wrote the whole context. */
  readonly isAllNative: boolean;

  constructor(name: string, { records, headId }: LiveSession) {
    const { path } = walkBranch(records, headId);
    const start = path.findLastIndex(isBoundary) + 1;
    const boundary = path[start - 1];
    this.path = path as readonly SourcedRecord[];
    this.#places = new Map(path.map(({ id }, at) => [id, at]));
    const edits = editsOf(name, this.path);
    this.removed = new Set([...edits].flatMap(([target, edit]) => (removes(edit) ? [String(target)] : [])));
    const units = new Map<string, Unit>();
    const broken = new Set<string>();
    for (const stored of records) {
      const { record, id, parentId, side, seq } = stored;
      if (record["customType"] === removedTypeOf(name) && (parentId === null || this.#places.has(parentId)))
        for (const removedId of removedIds(record)) broken.add(removedId);
      if (isTombstone(record)) broken.add(derivedParent(id));
      if (sourceFormatOf(record) !== name || record.type === "context_edit") continue;
      const unitId = derivedFromOf(record)?.id ?? id;
      const isHere = side ? parentId === null || this.#places.has(parentId) : this.#places.has(id);
      const isBehind = side ? seq > (boundary?.seq ?? 0) : (this.#places.get(id) ?? -1) >= start;
      const edit = edits.get(id);
      if (!isHere || edit === null || removes(edit)) broken.add(unitId);
      else if (isBehind) {
        const unit = addTo(units, unitId, stored);
        if (edit !== undefined) unit.replacedBy = edit;
      }
    }
    this.units = [...units].flatMap(([id, unit]) => (broken.has(id) || !isWhole(unit) ? [] : [unit]));
    this.#firstIds = new Set(this.units.map(({ first }) => first.id));
    const own = new Set(this.units.flatMap((unit) => unit.records.map(({ id }) => id)));
    // No context shows a record that an edit removes, so such a record does not count as another program's.
    for (const id of this.removed) own.add(id);
    // The last of several edits of a record counts, so earlier edits do not mark the branch as changed.
    for (const { id, record } of path) if ((edits.get(editTarget(record)) ?? null) !== null) own.add(id);
    const isPlain = boundary === undefined || (boundary.type === "reset" && !keepsRecords(boundary));
    this.isAllNative = isPlain && path.slice(start).every(({ id, type }) => own.has(id) || !contextTypes.has(type));
  }

  /** True means that the program wrote the last record. A framework that asks for approvals then answers its own calls. */
  get endsNative(): boolean {
    const last = this.path.at(-1)?.id;
    return this.units.at(-1)?.records.some(({ id }) => id === last) === true;
  }

  begins(id: string | undefined): boolean {
    return id !== undefined && this.#firstIds.has(id);
  }

  placeOf(id: string): number {
    return this.#places.get(id) ?? -1;
  }
}

function removedIds({ data }: SourcedRecord["record"]): readonly string[] {
  const ids = isFields(data) && Array.isArray(data["ids"]) ? (data["ids"] as readonly unknown[]) : [];
  return ids.filter((id) => typeof id === "string");
}

/** A context shows records of these types, or they change what it shows. */
const contextTypes: ReadonlySet<string> = new Set([
  "message",
  "custom_message",
  "branch_summary",
  "compaction",
  "context_edit",
  "custom",
]);

function addTo(units: Map<string, Unit>, id: string, stored: SourcedRecord): Unit {
  const unit = units.get(id) ?? { first: stored, records: [] };
  units.set(id, unit);
  unit.records.push(stored);
  return unit;
}

function isRemoval({ record }: SourcedRecord): boolean {
  return record.type === "context_edit" && record["replacement"] === null;
}

function removes(edit: SourcedRecord | null | undefined): edit is SourcedRecord {
  return edit !== null && edit !== undefined && isRemoval(edit);
}

/**
 * The value is null when the last edit comes from another program and is no removal. The item must then be rendered.
 */
function editsOf(name: string, path: readonly SourcedRecord[]): ReadonlyMap<unknown, SourcedRecord | null> {
  const edits = new Map<unknown, SourcedRecord | null>();
  for (const stored of path) {
    const target = editTarget(stored.record);
    const isOwn =
      sourceFormatOf(stored.record) === name && typeof stored.source === "string" && !stored.isSourceCanonical;
    if (target !== undefined) edits.set(target, isOwn || isRemoval(stored) ? stored : null);
  }
  return edits;
}

function isWhole({ first }: Unit): boolean {
  return typeof first.source === "string" && derivedFromOf(first.record) === null && !first.isSourceCanonical;
}

/** A redacted record may be a derived record, whose id begins with the id of the item. */
function derivedParent(id: string): string {
  const at = id.lastIndexOf("~d");
  return at > 0 && /^[1-9][0-9]*$/.test(id.slice(at + 2)) ? id.slice(0, at) : id;
}

function isBoundary({ type, side, record }: { type: string; side: boolean; record: SourcedRecord["record"] }): boolean {
  return !side && (type === "reset" || type === "compaction") && findRecordProblem(record) === null;
}

function keepsRecords({ record }: { readonly record: SourcedRecord["record"] }): boolean {
  return typeof record["firstKeptEntryId"] === "string";
}

function editTarget(record: SourcedRecord["record"]): unknown {
  return editIn(record)?.targetId;
}

/** Each result of a user's turn becomes a turn, because each result may be an item of its own. */
function piecesOf(turn: ReplayTurn): readonly ReplayTurn[] {
  if (turn.role !== "user" || turn.results.length === 0) return [turn];
  const results = turn.results.map((result) => ({ ...turn, recordId: null, results: [result], blocks: [] }));
  return turn.blocks.length === 0 ? results : [...results, { ...turn, results: [] }];
}

/** The ids of a reply include all its records between the first and the last one, because they form one turn. */
function idsOf(turn: ReplayTurn, branch: LiveBranch): readonly string[] {
  if (turn.role === "user" && turn.results.length > 0)
    return turn.results.flatMap(({ recordId }) => (recordId === null ? [] : [recordId]));
  if (turn.recordId === null) return [];
  if (turn.role !== "assistant" || turn.lastRecordId === null) return [turn.recordId];
  const [first, last] = [branch.placeOf(turn.recordId), branch.placeOf(turn.lastRecordId)];
  const between = branch.path
    .slice(first, last + 1)
    .filter(({ id, record }) => roleOf(record) === "assistant" && !branch.removed.has(id));
  return between.length === 0 ? [turn.recordId] : between.map(({ id }) => id);
}

function roleOf(record: SourcedRecord["record"]): unknown {
  return (record["message"] as Fields | undefined)?.["role"];
}

/** Tracks the original items, so that they are returned unchanged among rendered ones. */
class NativeUnits {
  readonly #byRecord: Map<string, Unit>;
  readonly #callIds = new Set<unknown>();
  /** The list is in the order of the log. It includes side records and items that a rendered history would move. */
  readonly #left: Unit[];

  constructor(branch: LiveBranch, turns: readonly ReplayTurn[], rules: UnitRules) {
    const spoken = branch.units.filter(({ first }) => !first.side);
    this.#byRecord = new Map(spoken.flatMap((unit) => unit.records.map(({ id }) => [id, unit] as const)));
    const mixed = mixedUnits(branch, turns, this.#byRecord, rules);
    this.#left = branch.units.filter((unit) => !mixed.has(unit));
    for (const unit of mixed) for (const { id } of unit.records) this.#byRecord.delete(id);
    // The call ids must be those of the turns, because a repeated id gets another value there.
    for (const turn of turns)
      if (turn.role === "assistant" && this.unitsOf(idsOf(turn, branch)).length > 0)
        for (const block of turn.blocks) if (block.type === "toolCall") this.#callIds.add(block.id);
  }

  /** The result is empty when another program wrote a part of the piece. */
  unitsOf(ids: readonly string[]): readonly Unit[] {
    const found = ids.map((id) => this.#byRecord.get(id));
    return found.includes(undefined) ? [] : [...new Set(found as Unit[])];
  }

  answers(turn: ReplayTurn): boolean {
    return turn.role === "user" && turn.results.some(({ callId }) => this.#callIds.has(callId));
  }

  /** Earlier items are returned with them, so that the order of the log is kept. */
  take(units: readonly Unit[]): readonly Unit[] {
    return this.#left.splice(0, Math.max(...units.map((unit) => this.#left.indexOf(unit))) + 1);
  }

  /** The items before a foreign record are returned first, so that the order of the log is kept. */
  before({ seq }: SourcedRecord): readonly Unit[] {
    const end = this.#left.findIndex(({ first }) => first.seq > seq);
    return this.#left.splice(0, end < 0 ? this.#left.length : end);
  }

  rest(): readonly Unit[] {
    return this.#left;
  }
}

interface UnitRules {
  readonly holdsResults: boolean;
  readonly repaired: boolean;
  /** True means that an item with an unanswered call is rendered. */
  readonly rendersUnanswered: boolean;
}

/** Another program wrote a part of such an item, so the item must be rendered. */
function mixedUnits(
  branch: LiveBranch,
  turns: readonly ReplayTurn[],
  units: ReadonlyMap<string, Unit>,
  { holdsResults, repaired, rendersUnanswered }: UnitRules,
): ReadonlySet<Unit> {
  const mixed = new Set<Unit>();
  const shown = new Set<string>();
  const callUnits = new Map<string, Unit>();
  for (const turn of turns) {
    const ids = idsOf(turn, branch);
    for (const id of ids) shown.add(id);
    const found = ids.map((id) => units.get(id));
    if (found.includes(undefined)) for (const unit of found) if (unit !== undefined) mixed.add(unit);
    const [unit] = found;
    if (turn.role === "assistant" && unit !== undefined)
      for (const block of turn.blocks) if (block.type === "toolCall") callUnits.set(block.id, unit);
    if (!holdsResults || turn.role !== "user") continue;
    for (const { callId, recordId } of turn.results) {
      const asking = callUnits.get(callId);
      // A result inside the item belongs to the item's call, even when an earlier call has the same id.
      const isOthers = recordId === null ? rendersUnanswered : units.get(recordId) === undefined;
      if (asking !== undefined && isOthers) mixed.add(asking);
    }
  }
  // A model does not get the text of a failed reply, so such an item is rendered.
  for (const unit of repaired ? units.values() : [])
    if (unit.records.some(({ id, side }) => !side && !shown.has(id))) mixed.add(unit);
  return mixed;
}

function writtenSession({
  records,
  headId,
  sessionId,
}: LiveSession): ConstructorParameters<typeof WrittenConversation>[0] {
  return { records, headId, sessionId, cwd: "", label: null, title: null, createdAtMs: 0 };
}
