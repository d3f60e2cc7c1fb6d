import { isFields, type Fields } from "@throughline/core/internal";
import type { RecordBody } from "../unit-records.ts";

export interface CompactionMetadata {
  /** The program's id for the boundary may differ from the record id. */
  readonly uuid: unknown;
  readonly metadata: Fields;
  /** A root boundary hides every earlier line from the program. */
  readonly isRoot: boolean;
}

/** A compacted context has a boundary, the messages that it kept, and a summary that may follow later. */
export interface Compaction {
  readonly boundary: number;
  readonly metadata: Fields;
  readonly isRoot: boolean;
  /** Null means that the compaction kept no message from before the boundary. */
  readonly kept: KeptPart | null;
  /** The summary follows the kept messages instead of preceding them. */
  readonly isSummaryLast: boolean;
  /** The value is -1 while the summary is missing. */
  readonly summary: number;
  /** This record begins the context; null while the summary is missing. */
  readonly body: RecordBody | null;
}

export interface KeptPart {
  readonly firstId: string;
  readonly lines: ReadonlySet<number>;
  /** The span holds the kept lines and the lines between them, because a line may continue from either. */
  readonly span: ReadonlySet<number>;
  /** A line that names the tip as its parent continues the compacted context after the summary. */
  readonly tip: number;
  /** True means that only the boundary follows the tip. */
  readonly isAtBoundary: boolean;
  /** Edits remove these records from between the kept ones, because the program does not send them. */
  readonly leftOut: readonly string[];
}

interface KeptCompaction extends Compaction {
  readonly kept: KeptPart;
  readonly body: RecordBody;
}

function isKeeper(one: Compaction, line: number): one is KeptCompaction {
  return one.body !== null && one.kept?.span.has(line) === true;
}

/** The prelude holds records that restart the context before the line. */
export interface LineEntry {
  readonly parent: number;
  readonly prelude: readonly RecordBody[];
}

export interface CompactedLines {
  parentOf(index: number): number;
  isMessage(index: number): boolean;
  isReply(index: number): boolean;
  /** The number is 0 when the line belongs to no reply. */
  replyOf(index: number): number;
  /** A line outside a reply is its own tip. */
  tipOf(index: number): number;
  idOf(index: number): string | null;
  indexOf(uuid: unknown): number | null;
}

/**
 * A program compacts repeatedly, but a person returns only to messages that a recent compaction kept. Older compactions
 * are dropped.
 */
const mostCompactions = 16;
/** A walk up the tree stops after this many lines, which bounds its cost. */
const mostSteps = 20_000;
const mostKeepers = 1024;

/** Follows the compactions of a session with Claude Code's rules. */
export class Compactions {
  readonly #lines: CompactedLines;
  #list: readonly Compaction[] = [];
  /** Holds what `#keeperOf` found for recent lines, so that a line behind one of them need not walk up the whole session. */
  readonly #keepers = new Map<number, KeptCompaction | null>();

  constructor(lines: CompactedLines) {
    this.#lines = lines;
  }

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
    this.#keepers.clear();
  }

  complete(compaction: Compaction, summary: number, body: RecordBody): void {
    this.#list = this.#list.map((one) => (one === compaction ? { ...one, summary, body } : one));
    this.#keepers.clear();
  }

  keeps(summary: number, line: number): boolean {
    return this.#list.find((one) => one.summary === summary && summary >= 0)?.kept?.lines.has(line) === true;
  }

  /** A message that follows a boundary without its summary gets an empty context, which these records begin. */
  emptied(line: number): readonly RecordBody[] {
    let boundary = line;
    while (boundary >= 0 && this.at(boundary) === null) boundary = this.#lines.parentOf(boundary);
    const compaction = this.at(boundary);
    if (compaction === null || !compaction.isRoot || this.#lines.parentOf(boundary) < 0) return [];
    return [resetBody(compaction), ...editsOf(compaction)];
  }

  /**
   * Returns the entry of a line whose stated parent stands before a compaction. Null means that the line keeps that
   * parent.
   */
  entryAt(parent: number): LineEntry | null {
    const compaction = this.#keeperOf(parent);
    if (compaction === null) return null;
    const { kept, summary, body, isSummaryLast } = compaction;
    // Results for the last kept call may come after the summary. A line after the summary then follows those results.
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

  /** A person who returns to these records sees them again, so they must not be edited out. */
  #leftOutAbove(line: number, { lines }: KeptPart): ReadonlySet<string> {
    const ids = new Set<string>();
    for (let at = line; at >= 0 && !lines.has(at) && ids.size < mostSteps; at = this.#lines.parentOf(at))
      for (const id of recordIds(this.#lines.idOf(at))) ids.add(id);
    return ids;
  }

  /**
   * Edits remove the lines from the context. A summary that begins the context is skipped, because the context needs
   * it.
   */
  editsOfLines(lines: readonly number[]): readonly RecordBody[] {
    const summaries = new Set(this.#list.flatMap((one) => (one.isSummaryLast ? [] : [one.summary])));
    return lines
      .filter((line) => !summaries.has(line))
      .flatMap((line) => recordIds(this.#lines.idOf(line)).map(editOf));
  }

  /**
   * The kept messages after a summary may end with a reply that grew since. The value is -1 for a line that is no such
   * summary.
   */
  #tipBehind(line: number): number {
    const compaction = this.#list.find(({ summary, isSummaryLast }) => summary === line && !isSummaryLast);
    return compaction?.kept === undefined || compaction.kept === null ? -1 : this.#lines.tipOf(compaction.kept.tip);
  }

  /**
   * The keeper may have kept the line itself or the nearest line above it. When several compactions did, the newest
   * counts.
   */
  #keeperOf(line: number): KeptCompaction | null {
    if (this.#list.length === 0) return null;
    const keeper = this.#keeperAbove(line);
    if (this.#keepers.size >= mostKeepers) this.#keepers.clear();
    this.#keepers.set(line, keeper);
    return keeper;
  }

  #keeperAbove(line: number): KeptCompaction | null {
    let [at, steps] = [line, 0];
    while (at >= 0 && steps < mostSteps) {
      const found = this.#keepers.get(at);
      if (found !== undefined) return found;
      const keeper = this.#list.findLast((one) => isKeeper(one, at));
      if (keeper !== undefined) return keeper;
      const own = this.at(at);
      if (own?.isRoot === true && own.kept === null) return null;
      at = this.#lines.parentOf(at);
      steps += 1;
    }
    return null;
  }

  /** The program keeps all listed messages or none, so one missing message voids the list. */
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

  /** @param isWhole whether every line between the first and the last one is kept too */
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
    // The program keeps a whole reply when it keeps a part of it, so the reply's other lines count as kept.
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

  /** An earlier compaction may have removed the line from between its kept lines. */
  #isLeftOut(line: number): boolean {
    return this.#list.findLast((one) => isKeeper(one, line))?.kept?.lines.has(line) === false;
  }

  /**
   * The program keeps a whole reply when it keeps a part of it, so the reply's lines above belong to the kept part. The
   * lowest line comes first.
   */
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

/** The id of a line's last record ends with the number of derived records, so all ids of the line follow from it. */
function recordIds(lastId: string | null): readonly string[] {
  if (lastId === null) return [];
  const [, first = lastId, count = "0"] = /^(.*)~d(\d{1,9})$/s.exec(lastId) ?? [];
  const derived = Array.from({ length: Number(count) }, (_, index) => `${first}~d${index + 1}`);
  return [first, ...derived];
}
