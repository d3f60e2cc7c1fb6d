import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, type Fields } from "@throughline/core/internal";
import type { WriteOptions } from "../format-writer.ts";
import { isUuid } from "../made-ids.ts";
import type { LiveSession } from "../live/live-format.ts";
import { lineUnits, type LineUnit, type LineUnits } from "./line-units.ts";
import { ClaudeCodeLines } from "./write-claude-code.ts";

/** Holds the facts about a session that Claude Code's lines need. */
export interface LinedSession extends LiveSession {
  /** States the folder that the session works in; empty when it is unknown. */
  readonly cwd: string;
  /** States the name that a person gave the session; null for none. */
  readonly label: string | null;
  /** States the name that was derived from the session's content; null for none. */
  readonly title: string | null;
}

/** Holds a line of a log. */
export interface LoggedLine {
  /** Holds the line as a JSON object. */
  readonly value: Fields;
  /** Holds the first record of the line; null for a line that was created in rendering. */
  readonly first: SourcedRecord | null;
  /** States the id of the line's last main record; null for a line without one. */
  readonly lastId: string | null;
}

/**
 * Returns a log as Claude Code's lines. Lines that Claude Code wrote are returned unchanged, in the order of the log.
 * Records of other programs on the active branch, and edited or redacted lines, are rendered. Rendered lines have the
 * same `uuid`s in every call.
 */
export function loggedLines(session: LinedSession, onLoss: WriteOptions["onLoss"] = () => {}): readonly LoggedLine[] {
  const found = lineUnits(session.records, session.headId);
  const own = found.units.filter(({ value }) => value !== null);
  if (found.isAllNative) return own.map(nativeLine);
  const names = own.length > 0 ? { label: null, title: null } : {};
  const lines = new ClaudeCodeLines(
    { ...session, ...names, createdAtMs: session.records[0]?.storedAtMs ?? 0 },
    { onLoss },
  );
  const made = [...lines.all()].filter((line) => line !== undefined);
  return new MergedLines(found, own, session.records, lines.lastRecords).all(made);
}

function nativeLine({ first, records, value }: LineUnit): LoggedLine {
  return { value: value ?? {}, first, lastId: records.findLast(({ side }) => !side)?.id ?? null };
}

/**
 * The rendered lines cover the whole branch. Original lines replace their rendered copies, so that Claude Code gets its
 * own bytes back.
 */
class MergedLines {
  readonly #units: LineUnits;
  readonly #own: LineUnit[];
  readonly #records: ReadonlyMap<string, SourcedRecord>;
  readonly #lastRecords: ReadonlyMap<string, string>;
  readonly #uuids = new Map<string, string>();

  constructor(
    units: LineUnits,
    own: readonly LineUnit[],
    records: readonly SourcedRecord[],
    lastRecords: ReadonlyMap<string, string>,
  ) {
    this.#units = units;
    this.#own = [...own];
    this.#records = new Map(records.map((stored) => [stored.id, stored]));
    this.#lastRecords = lastRecords;
  }

  all(made: readonly Fields[]): readonly LoggedLine[] {
    for (const line of made) this.#name(line["uuid"]);
    const lines: LoggedLine[] = [];
    let seq = 0;
    for (const line of made) {
      const uuid = String(line["uuid"]);
      const lastId = this.#lastRecords.get(uuid) ?? null;
      const unit = this.#unitOf(uuid);
      const first = lastId === null ? null : (this.#records.get(lastId) ?? null);
      seq = Math.max(seq, unit?.records.at(-1)?.seq ?? first?.seq ?? seq);
      lines.push(...this.#ownUpTo(seq));
      if (unit === null) lines.push({ value: this.#renamed(line), first, lastId });
    }
    return [...lines, ...this.#ownUpTo(Infinity)];
  }

  /**
   * An original line keeps its `uuid`. A changed line takes the `uuid` from before the change, so that references stay
   * valid.
   */
  #name(uuid: unknown): void {
    if (typeof uuid !== "string") return;
    const unit = this.#unitOf(uuid);
    const id = this.#lastRecords.get(uuid)?.replace(/~d[1-9][0-9]{0,8}$/, "") ?? "";
    const own = unit?.value?.["uuid"];
    if (typeof own === "string") this.#uuids.set(uuid, own);
    else if (unit === null && isUuid(id) && !this.#taken.has(id)) this.#uuids.set(uuid, id);
    this.#taken.add(id);
  }

  readonly #taken = new Set<string>();

  #unitOf(uuid: string): LineUnit | null {
    const id = this.#lastRecords.get(uuid);
    const unit = id === undefined ? undefined : this.#units.byRecord.get(id);
    return unit === undefined || unit.value === null ? null : unit;
  }

  #ownUpTo(seq: number): readonly LoggedLine[] {
    const until = this.#own.findIndex(({ first }) => first.seq > seq);
    return this.#own.splice(0, until < 0 ? this.#own.length : until).map(nativeLine);
  }

  #renamed(line: Fields): Fields {
    const named = Object.entries(line).map(([name, value]) => [name, this.#renamedField(name, value)] as const);
    return Object.fromEntries(named);
  }

  #renamedField(name: string, value: unknown): unknown {
    if (uuidFields.has(name)) return typeof value === "string" ? (this.#uuids.get(value) ?? value) : value;
    if (name === "uuids" && Array.isArray(value)) return value.map((uuid) => this.#renamedField("uuid", uuid));
    const isHolder = name === "compactMetadata" || name === "preservedMessages";
    return isHolder && isFields(value) ? this.#renamed(value) : value;
  }
}

const uuidFields: ReadonlySet<string> = new Set([
  "uuid",
  "parentUuid",
  "logicalParentUuid",
  "sourceToolAssistantUUID",
  "anchorUuid",
]);
