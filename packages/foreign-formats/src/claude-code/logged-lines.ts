import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, type Fields } from "@throughline/core/internal";
import type { WriteOptions } from "../format-writer.ts";
import { isUuid } from "../made-ids.ts";
import type { LiveSession } from "../live/live-format.ts";
import { lineUnits, type LineUnit, type LineUnits } from "./line-units.ts";
import { ClaudeCodeLines } from "./write-claude-code.ts";

/** A session as Claude Code is to have it. */
export interface LinedSession extends LiveSession {
  /** The folder it works in; empty where none is known. */
  readonly cwd: string;
  /** What a person called it; null for none. */
  readonly label: string | null;
  /** What it was called by its content; null for none. */
  readonly title: string | null;
}

/** A line of a log. */
export interface LoggedLine {
  /** The line as a JSON object. */
  readonly value: Fields;
  /** Null for a line that was made up. */
  readonly first: SourcedRecord | null;
  /** The last main record that the line stands for. */
  readonly lastId: string | null;
}

/**
 * A log as Claude Code's lines. Its own lines come back as they were, in the order of the log. What others wrote on the active
 * branch, and what was edited or redacted, is rendered; its `uuid`s are the same in every call.
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

/** Lines that were rendered of a whole branch, with the program's own in their places. */
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

  /** A line of the program's own has its own `uuid`, and one that was changed has that of the line before the change. */
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
