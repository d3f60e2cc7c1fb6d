import type { StoredRecord } from "@throughline/core";
import {
  type Fields,
  isFailedRecord,
  isFields,
  isTombstone,
  readUsage,
  type Steps,
  throughlineKind,
  touchedFiles,
} from "@throughline/core/internal";
import { blocksOf } from "./block-nodes.ts";
import { AxisPoints, type DigestAxis } from "./digest-axis.ts";
import { promptTitle } from "./prompt-title.ts";
import type { RowOptions } from "./row-options.ts";
import { type DigestCompaction, type DigestFact, DigestFacts } from "./digest-facts.ts";
import { findWay, type SessionWay } from "./session-way.ts";

/** States what happened from one prompt to the next. */
export interface DigestPrompt {
  readonly seq: number;
  /** States the last record before the next prompt. */
  toSeq: number;
  readonly tsMs: number | null;
  /** Holds the first line of what the person said, to 120 characters. */
  readonly text: string;
  tools: number;
  errors: number;
  /** Counts the files that calls wrote, each once. */
  files: number;
  outputTokens: number;
}

/** Shows a whole session without its content: what a page needs for chapters, marks and a time axis. */
export interface DigestView {
  readonly prompts: readonly DigestPrompt[];
  /** Lists records that failed: results of tools, commands and replies. */
  readonly errors: readonly number[];
  /** Lists records of calls whose request the guard shortened. */
  readonly shortened: readonly number[];
  /** Lists the records of Throughline that a transcript shows: redactions, and edits of earlier messages. */
  readonly marks: readonly number[];
  /** Lists the first record of each branch that the conversation left, with the number of its records. */
  readonly branches: SessionWay["branches"];
  readonly compactions: readonly DigestCompaction[];
  readonly axis: DigestAxis | null;
}

const factsOfStep = 1000;

/**
 * Takes the records of a session in the order of their seq, and shows what is on the way to a head. It holds no content
 * but the first line of each prompt and the paths of files. More records may follow a view. After a redaction the session
 * must be read again from its first record.
 */
export class SessionDigest {
  readonly #options: Pick<RowOptions, "promptText">;
  readonly #facts = new DigestFacts();
  readonly #shortened: number[] = [];
  readonly #marks: number[] = [];
  readonly #seqOf = new Map<string, number>();
  readonly #parents: number[] = [0];
  #lastSeq = 0;

  constructor(options: Pick<RowOptions, "promptText">) {
    this.#options = options;
  }

  /** States the last record that was taken; 0 before the first. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Returns whether the record is a prompt. */
  take(stored: StoredRecord): boolean {
    const { record, seq, id, parentId, side } = stored;
    this.#lastSeq = seq;
    this.#parents[seq] = parentId === null ? 0 : (this.#seqOf.get(parentId) ?? -1);
    if (!side) this.#seqOf.set(id, seq);
    if (isShortened(record)) this.#shortened.push(seq);
    if (!side && isMark(record)) this.#marks.push(seq);
    const fact = factOf(stored, side ? null : promptTitle(record, this.#options));
    if (fact === null) return false;
    this.#facts.add(fact);
    return fact.prompt !== null;
  }

  /** Shows the session as it is at a head. */
  *view(headId: string | null): Steps<DigestView> {
    const headSeq = headId === null ? 0 : (this.#seqOf.get(headId) ?? this.#lastSeq);
    const way = yield* findWay(this.#parents, headSeq);
    const prompts: DigestPrompt[] = [];
    const errors: number[] = [];
    const compactions: DigestCompaction[] = [];
    const points = new AxisPoints();
    let paths = new Set<string>();
    for (let index = 0; index < this.#facts.count; index++) {
      if (index % factsOfStep === 0) yield;
      const fact = this.#facts.at(index);
      if (!way.has(fact.seq)) continue;
      if (fact.prompt !== null) {
        paths = new Set();
        prompts.push(newPrompt(fact, fact.prompt));
      }
      if (fact.isError) errors.push(fact.seq);
      if (fact.compaction !== null) compactions.push(fact.compaction);
      addTo(prompts.at(-1), fact, paths);
      points.add(fact);
    }
    endPrompts(prompts, headSeq);
    const axis = yield* points.axis();
    const [shortened, marks] = [this.#shortened, this.#marks];
    return { prompts, errors, shortened, marks, branches: way.branches, compactions, axis };
  }
}

function newPrompt({ seq, tsMs }: DigestFact, text: string): DigestPrompt {
  return { seq, toSeq: seq, tsMs, text, tools: 0, errors: 0, files: 0, outputTokens: 0 };
}

function addTo(prompt: DigestPrompt | undefined, fact: DigestFact, paths: Set<string>): void {
  if (prompt === undefined) return;
  prompt.tools += fact.tools;
  prompt.errors += fact.isError ? 1 : 0;
  prompt.outputTokens += fact.output;
  for (const path of fact.paths) paths.add(path);
  prompt.files = paths.size;
}

function endPrompts(prompts: readonly DigestPrompt[], headSeq: number): void {
  for (const [index, prompt] of prompts.entries())
    prompt.toSeq = Math.max(prompt.seq, (prompts[index + 1]?.seq ?? headSeq + 1) - 1);
}

const noPaths: readonly string[] = [];

/** Returns null for a record that adds nothing. */
function factOf(stored: StoredRecord, prompt: string | null): DigestFact | null {
  const { record, seq, tsMs, storedAtMs } = stored;
  const message = record.type === "message" && isFields(record["message"]) ? record["message"] : null;
  const usage = usageOf(record, message);
  const compaction = record.type === "compaction" ? compactionOf(record, seq) : null;
  if (message === null && usage === null && compaction === null) return null;
  return {
    seq,
    tsMs: tsMs ?? storedAtMs,
    prompt,
    isReply: message?.["role"] === "assistant" && message["fragment"] !== true,
    isError: isFailedRecord(record),
    tools: message === null ? 0 : toolsIn(message),
    output: usage?.output ?? 0,
    fill: usage?.fill ?? null,
    paths: message === null ? noPaths : touchedFiles(record).map(({ path }) => path),
    compaction,
  };
}

function toolsIn({ role, content }: Fields): number {
  return role === "bashExecution" ? 1 : blocksOf(content).filter(({ type }) => type === "toolCall").length;
}

/** Imports of some programs have the counts of a reply in a record of their own, and one of a later block adds output. */
function usageOf(
  record: StoredRecord["record"],
  message: Fields | null,
): { readonly output: number; readonly fill: number | null } | null {
  const { usage, kind } = record;
  if (record.type === "usage" && kind === "claude-code.reply") {
    const output = isFields(usage) ? usage["output"] : null;
    return typeof output === "number" && Number.isSafeInteger(output) && output > 0 ? { output, fill: null } : null;
  }
  const counts = readUsage(record.type === "usage" ? usage : message?.["usage"]);
  if (counts === null) return null;
  // The counts of a whole run are no fill of the window.
  return { output: counts.output, fill: kind === "copilot-cli.run" ? null : counts.occupancyTokens };
}

function compactionOf(record: StoredRecord["record"], seq: number): DigestCompaction {
  const { tokensBefore, tokensAfter, details } = record;
  const source = isFields(details) ? details["source"] : null;
  return {
    seq,
    tokensBefore: countOrNull(tokensBefore),
    tokensAfter: countOrNull(tokensAfter),
    source: typeof source === "string" && source !== "" ? source : null,
  };
}

function countOrNull(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
}

/** The type of these records says nothing, so their heads do not tell them from others. */
function isMark(record: StoredRecord["record"]): boolean {
  return record.type === "custom" && (throughlineKind(record) === "edit" || isTombstone(record));
}

function isShortened(record: StoredRecord["record"]): boolean {
  const data = throughlineKind(record) === "call" ? record["data"] : null;
  const changes = isFields(data) ? data["changes"] : null;
  return Array.isArray(changes) && changes.length > 0;
}
