import { isFields, type Fields } from "@throughline/core/internal";
import type { RecordBody } from "../unit-records.ts";

/** The facts that a boundary states about its compaction. */
export interface CompactionMetadata {
  /** The boundary's own id as the program states it. */
  readonly uuid: unknown;
  /** `compactMetadata` of the line. */
  readonly metadata: Fields;
  /** Whether the line is a root: the program sees nothing before it. */
  readonly isRoot: boolean;
}

/** A compacted context: its boundary, what it kept, and its summary once that has come. */
export interface Compaction {
  readonly boundary: number;
  readonly metadata: Fields;
  readonly isRoot: boolean;
  /** The messages before the boundary that stay, in their order; null for none. */
  readonly kept: KeptPart | null;
  /** Whether the summary follows what was kept, in place of standing before it. */
  readonly isSummaryLast: boolean;
  /** The summary's line; -1 as long as there is none. */
  readonly summary: number;
  /** The record that begins the context; null as long as there is no summary. */
  readonly body: RecordBody | null;
}

export interface KeptPart {
  /** The record that the context begins with. */
  readonly firstId: string;
  readonly lines: ReadonlySet<number>;
  /** These, and those between them. */
  readonly span: ReadonlySet<number>;
  /** The line that the compacted context continues from. */
  readonly tip: number;
  /** Whether nothing but the boundary stands behind the tip. */
  readonly isAtBoundary: boolean;
  /** Records between those that were kept. */
  readonly leftOut: readonly string[];
}

/** A compaction that kept messages and has its summary. */
interface KeptCompaction extends Compaction {
  readonly kept: KeptPart;
  readonly body: RecordBody;
}

function isKeeper(one: Compaction, line: number): one is KeptCompaction {
  return one.body !== null && one.kept?.span.has(line) === true;
}

/** The parent of a line, and the records that start its context again before it. */
export interface LineEntry {
  readonly parent: number;
  readonly prelude: readonly RecordBody[];
}

/** The facts about lines that compactions need. */
export interface CompactedLines {
  parentOf(index: number): number;
  isMessage(index: number): boolean;
  /** Whether the model wrote it. */
  isReply(index: number): boolean;
  /** The number of the reply that a line belongs to, 0 for none. */
  replyOf(index: number): number;
  /** The newest line of the reply that a line belongs to; the line itself when it belongs to none. */
  tipOf(index: number): number;
  idOf(index: number): string | null;
  indexOf(uuid: unknown): number | null;
}

/** A program compacts again and again; a person goes back to what one of the newest compactions kept. */
const mostCompactions = 16;
/** Lines are followed upwards so far at most. */
const mostSteps = 20_000;

/** The compactions of a session, as Claude Code follows them. */
export class Compactions {
  readonly #lines: CompactedLines;
  #list: readonly Compaction[] = [];

  constructor(lines: CompactedLines) {
    this.#lines = lines;
  }

  /** The compaction of a boundary. */
  at(boundary: number): Compaction | null {
    return this.#list.find((one) => one.boundary === boundary) ?? null;
  }

  begin(boundary: number, { uuid, metadata, isRoot }: CompactionMetadata): void {
    const { preservedMessages: messages, preservedSegment: segment } = metadata;
    const anchor = isFields(messages) ? messages["anchorUuid"] : isFields(segment) ? segment["anchorUuid"] : undefined;
    const kept = isFields(messages)
      ? this.#listed(boundary, messages["uuids"])
      : isFields(segment)
        ? this.#between(boundary, segment["headUuid"], segment["tailUuid"])
        : null;
    const isSummaryLast = kept !== null && typeof anchor === "string" && anchor === uuid;
    const one = { boundary, metadata, isRoot, kept, isSummaryLast, summary: -1, body: null };
    this.#list = [...this.#list.slice(1 - mostCompactions), one];
  }

  complete(compaction: Compaction, summary: number, body: RecordBody): void {
    this.#list = this.#list.map((one) => (one === compaction ? { ...one, summary, body } : one));
  }

  /** Whether the compaction with that summary kept a line. */
  keeps(summary: number, line: number): boolean {
    return this.#list.find((one) => one.summary === summary && summary >= 0)?.kept?.lines.has(line) === true;
  }

  /** The records that begin the context of a message on a boundary, in place of the summary. */
  emptied(line: number): readonly RecordBody[] {
    let boundary = line;
    while (boundary >= 0 && this.at(boundary) === null) boundary = this.#lines.parentOf(boundary);
    const compaction = this.at(boundary);
    if (compaction === null || !compaction.isRoot || this.#lines.parentOf(boundary) < 0) return [];
    return [resetBody(compaction), ...editsOf(compaction)];
  }

  /** The entry of a line whose stated parent stands before a compaction; null when the line hangs on that parent. */
  entryAt(parent: number): LineEntry | null {
    const compaction = this.#keeperOf(parent);
    if (compaction === null) return null;
    const { kept, summary, body, isSummaryLast } = compaction;
    // A line behind a summary follows the results that have come since for the last call that was kept.
    const tip = this.#tipBehind(parent);
    if (tip > parent && compaction.summary !== parent) return this.entryAt(tip);
    if (parent === summary && !isSummaryLast) return { parent: Math.max(tip, parent), prelude: [] };
    if (parent > summary) return null;
    const isTip = parent === kept.tip && !isSummaryLast;
    if (isTip) return this.entryAt(summary);
    const shown = this.#leftOutAbove(parent, kept);
    const leftOut = kept.leftOut.filter((id) => !shown.has(id));
    return { parent, prelude: [isSummaryLast ? resetBody(compaction) : body, ...leftOut.map(editOf)] };
  }

  /** The records on the way from a line up to what a compaction kept. A person who goes back to them has them again. */
  #leftOutAbove(line: number, { lines }: KeptPart): ReadonlySet<string> {
    const ids = new Set<string>();
    for (let at = line; at >= 0 && !lines.has(at) && ids.size < mostSteps; at = this.#lines.parentOf(at))
      for (const id of recordIds(this.#lines.idOf(at))) ids.add(id);
    return ids;
  }

  /** Records that take lines out of the context, but for a summary that the context begins with. */
  editsOfLines(lines: readonly number[]): readonly RecordBody[] {
    const summaries = new Set(this.#list.flatMap((one) => (one.isSummaryLast ? [] : [one.summary])));
    return lines
      .filter((line) => !summaries.has(line))
      .flatMap((line) => recordIds(this.#lines.idOf(line)).map(editOf));
  }

  /** The newest line of the reply that the messages kept behind a summary end with; -1 for any other line. */
  #tipBehind(line: number): number {
    const compaction = this.#list.find(({ summary, isSummaryLast }) => summary === line && !isSummaryLast);
    return compaction?.kept === undefined || compaction.kept === null ? -1 : this.#lines.tipOf(compaction.kept.tip);
  }

  /** The compaction that kept a line, or the nearest line above it; of several the newest. Null for none. */
  #keeperOf(line: number): KeptCompaction | null {
    let [at, steps] = [line, 0];
    while (at >= 0 && steps < mostSteps) {
      const keeper = this.#list.findLast((one) => isKeeper(one, at));
      if (keeper !== undefined) return keeper;
      const own = this.at(at);
      if (own?.isRoot === true && own.kept === null) return null;
      at = this.#lines.parentOf(at);
      steps += 1;
    }
    return null;
  }

  /** The program takes the list as a whole: it keeps none of one of which a message is nowhere. */
  #listed(boundary: number, uuids: unknown): KeptPart | null {
    if (!Array.isArray(uuids) || uuids.length === 0) return null;
    const indexes = (uuids as readonly unknown[]).map((uuid) => this.#lines.indexOf(uuid));
    const listed = indexes.filter((index) => index !== null && index < boundary);
    return listed.length === indexes.length ? this.#part(boundary, listed as readonly number[], false) : null;
  }

  #between(boundary: number, head: unknown, tail: unknown): KeptPart | null {
    const [first, last] = [this.#lines.indexOf(head), this.#lines.indexOf(tail)];
    return first === null || last === null ? null : this.#part(boundary, [first, last], true);
  }

  /** @param isWhole whether all between the first and the last one is kept too */
  #part(boundary: number, listed: readonly number[], isWhole: boolean): KeptPart | null {
    const [begin, last] = [listed[0] ?? -1, listed.at(-1) ?? -1];
    const own = this.#lines.tipOf(last);
    const tip = own < boundary ? own : last;
    const lines: number[] = [];
    for (let at = tip; at >= 0 && lines.length < mostSteps; at = this.#lines.parentOf(at)) {
      lines.push(at);
      if (at === begin) break;
    }
    if (lines.at(-1) !== begin) return null;
    const named = new Set(listed);
    const isNamed = (index: number): boolean => (isWhole ? !this.#isLeftOut(index) : named.has(index));
    lines.push(...this.#restOfReply(begin, lines.filter(isNamed)));
    const first = lines.at(-1) ?? begin;
    // The program keeps a reply of which it keeps a part.
    const replies = new Set(
      listed.filter((index) => this.#lines.isReply(index)).map((index) => this.#lines.replyOf(index)),
    );
    const isKept = (index: number): boolean =>
      isNamed(index) || replies.has(this.#lines.replyOf(index)) || !this.#lines.isMessage(index);
    const leftOut = lines.filter((index) => !isKept(index)).flatMap((index) => recordIds(this.#lines.idOf(index)));
    const firstId = recordIds(this.#lines.idOf(first))[0];
    if (firstId === undefined) return null;
    const isAtBoundary = this.#lastMessage(this.#lines.parentOf(boundary)) === this.#lastMessage(tip);
    return {
      firstId,
      lines: new Set(lines.filter(isKept)),
      span: new Set(lines),
      tip,
      isAtBoundary,
      leftOut: leftOut.toReversed(),
    };
  }

  /** Whether an earlier compaction removed a line from between those that it kept. */
  #isLeftOut(line: number): boolean {
    return this.#list.findLast((one) => isKeeper(one, line))?.kept?.lines.has(line) === false;
  }

  /** The lines above one of a reply, the lowest first, when the program keeps a part of that reply. */
  #restOfReply(line: number, kept: readonly number[]): readonly number[] {
    const reply = this.#lines.replyOf(line);
    const isPartOf = (index: number): boolean => this.#lines.isReply(index) && this.#lines.replyOf(index) === reply;
    if (reply === 0 || !kept.some(isPartOf)) return [];
    const above: number[] = [];
    for (
      let at = this.#lines.parentOf(line);
      at >= 0 && this.#lines.replyOf(at) === reply;
      at = this.#lines.parentOf(at)
    )
      above.push(at);
    return above;
  }

  #lastMessage(line: number): number {
    let at = line;
    while (at >= 0 && !this.#lines.isMessage(at)) at = this.#lines.parentOf(at);
    return at;
  }
}

/** Edits that leave out the records that a compaction removed between the messages that it kept. */
export function editsOf({ kept }: Pick<Compaction, "kept">): readonly RecordBody[] {
  return (kept?.leftOut ?? []).map(editOf);
}

function editOf(targetId: string): RecordBody {
  return { type: "context_edit", targetId, replacement: null };
}

function resetBody({ kept, isSummaryLast }: Compaction): RecordBody {
  const from = isSummaryLast && kept !== null ? { firstKeptEntryId: kept.firstId } : {};
  return { type: "reset", reason: "claude-code.compact_boundary", ...from };
}

/** The records of a line, by its last one. */
function recordIds(lastId: string | null): readonly string[] {
  if (lastId === null) return [];
  const [, first = lastId, count = "0"] = /^(.*)~d(\d{1,9})$/s.exec(lastId) ?? [];
  const derived = Array.from({ length: Number(count) }, (_, index) => `${first}~d${index + 1}`);
  return [first, ...derived];
}
