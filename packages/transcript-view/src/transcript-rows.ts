import type { StoredRecord } from "@throughline/core";
import { type Fields, isFields, type Steps } from "@throughline/core/internal";
import { blocksOf, messageNodes, textOf } from "./block-nodes.ts";
import { markdownTree } from "./markdown-tree.ts";
import { markerRow } from "./marker-row.ts";
import { promptTitle } from "./prompt-title.ts";
import type { RowOptions } from "./row-options.ts";
import { sizeText } from "./text-blocks.ts";
import { commandRow, shortText, toolRow, type ToolUse, visibleContent } from "./tool-row.ts";
import type { RowBadge, RowContent, TranscriptRow } from "./transcript-row.ts";

type RowFacts = Pick<TranscriptRow, "chapter" | "speaker" | "resultSeq">;
type RowPlace = Pick<TranscriptRow, "seq" | "tsMs" | "isOffBranch">;

/** A call waits for its result, so that both are one row. */
interface WaitingCall {
  readonly place: RowPlace;
  readonly index: number;
  readonly callId: string | null;
  readonly use: ToolUse;
  readonly speaker: string;
}

/** Rows behind a waiting call wait as well. A result that comes later than this has a row of its own. */
const mostWaiting = 200;

/**
 * Makes rows of records, which come in the order of their seq. Rows come out in the order of their records, each once. The
 * memory is bounded by the size of 200 rows.
 */
export class TranscriptRows {
  readonly #options: RowOptions;
  readonly #calls = new Map<string, WaitingCall>();
  #waiting: (TranscriptRow | WaitingCall)[] = [];
  #chapters: number;

  /** @param chapters counts the prompts of earlier files, whose numbers go on here */
  constructor(options: RowOptions, chapters: number = 0) {
    this.#options = options;
    this.#chapters = chapters;
  }

  /** Takes the next record and returns the rows that are complete. */
  *take(stored: StoredRecord, isOffBranch: boolean = false): Steps<readonly TranscriptRow[]> {
    const { record, seq, tsMs, side } = stored;
    const place = { seq, tsMs, isOffBranch };
    if (side) return [];
    const message = record.type === "message" && isFields(record["message"]) ? record["message"] : null;
    if (message === null) {
      const content = yield* markerRow(record, this.#options);
      if (content !== null) this.#add(place, 0, content);
    } else yield* this.#message(stored, place, message);
    return yield* this.#complete(this.#waiting.length > mostWaiting);
  }

  /** Returns the rows that still wait. */
  *finish(): Steps<readonly TranscriptRow[]> {
    return yield* this.#complete(true);
  }

  *#message(stored: StoredRecord, place: RowPlace, message: Fields): Steps<void> {
    const { level } = this.#options;
    switch (message["role"]) {
      case "user":
        return yield* this.#user(stored, place, message);
      case "assistant":
        return yield* this.#assistant(place, message);
      case "toolResult":
        if (level !== "words") yield* this.#result(place, message);
        return undefined;
      case "bashExecution":
        if (level !== "words") this.#add(place, 0, yield* commandRow(message, this.#options));
        return undefined;
      default:
        if (level !== "words") yield* this.#note(place, message, textOf(message["role"]) || "unknown role");
        return undefined;
    }
  }

  *#user({ record }: StoredRecord, place: RowPlace, message: Fields): Steps<void> {
    const blocks = blocksOf(message["content"]);
    const title = promptTitle(record, this.#options);
    if (title === null) return yield* this.#note(place, message, noteTitle(message));
    const tree = yield* messageNodes(blocks, this.#options);
    this.#chapters += 1;
    const content = { kind: "prompt", title, detail: "", badges: [], fold: "none", tree } as const;
    this.#add(place, 0, content, { chapter: this.#chapters });
  }

  *#note(place: RowPlace, message: Fields, title: string): Steps<void> {
    if (this.#options.level === "words") return;
    const blocks = blocksOf(message["content"]);
    if (blocks.length === 0) return;
    const tree = yield* messageNodes(blocks, this.#options);
    const detail = shortText(textOf(blocks.find(({ type }) => type === "text")?.["text"]), 80);
    this.#add(place, 0, { kind: "note", title, detail, badges: [], fold: "closed", tree });
  }

  *#assistant(place: RowPlace, message: Fields): Steps<void> {
    const { level } = this.#options;
    const badges = replyBadges(message);
    const speaker = textOf(message["model"]);
    let index = 0;
    let prose: Fields[] = [];
    const endProse = function* (this: TranscriptRows, ends: readonly RowBadge[]): Steps<void> {
      if (prose.length === 0 && ends.length === 0) return;
      const tree = yield* messageNodes(prose, this.#options);
      prose = [];
      if (tree.length === 0 && ends.length === 0) return;
      const content = { kind: "assistant", title: "Assistant", detail: "", badges: ends, fold: "none", tree } as const;
      this.#add(place, index++, content, { speaker });
    }.bind(this);
    for (const block of blocksOf(message["content"])) {
      if (block["type"] === "thinking") {
        if (level === "words") continue;
        yield* endProse([]);
        const content = yield* thinkingRow(block);
        if (content !== null) this.#add(place, index++, content, { speaker });
      } else if (block["type"] === "toolCall") {
        if (level === "words") continue;
        yield* endProse([]);
        this.#call(place, index++, block, speaker);
      } else prose.push(block);
    }
    yield* endProse(badges);
  }

  #call(place: RowPlace, index: number, block: Fields, speaker: string): void {
    const { name, id, arguments: args, partialJson } = block;
    const text = textOf(partialJson);
    const use: ToolUse = {
      name: textOf(name) || "tool",
      args: text === "" ? args : text,
      result: null,
      resultMs: null,
      resultSeq: null,
    };
    const call = { place, index, callId: typeof id === "string" ? id : null, use, speaker };
    // A program that gives two open calls the same id gets the result at the later one.
    if (call.callId !== null) this.#calls.set(call.callId, call);
    this.#waiting.push(call);
  }

  *#result(place: RowPlace, message: Fields): Steps<void> {
    const { toolCallId, toolName } = message;
    const call = typeof toolCallId === "string" ? this.#calls.get(toolCallId) : undefined;
    if (call !== undefined) {
      call.use.result = message;
      call.use.resultMs = place.tsMs;
      call.use.resultSeq = place.seq;
      this.#calls.delete(toolCallId as string);
      return;
    }
    const name = textOf(toolName);
    const use: ToolUse = {
      name: `Result${name === "" ? "" : ` of ${name}`}`,
      args: null,
      result: message,
      resultMs: null,
      resultSeq: place.seq,
    };
    this.#add(place, 0, yield* toolRow(use, null, this.#options), { resultSeq: place.seq });
  }

  #add(
    place: RowPlace,
    index: number,
    content: RowContent,
    { chapter = null, speaker = null, resultSeq = null }: Partial<RowFacts> = {},
  ): void {
    this.#waiting.push({ ...place, ...visibleContent(content), index, callId: null, chapter, speaker, resultSeq });
  }

  /** @param isForced true to return every row, also of calls without a result */
  *#complete(isForced: boolean): Steps<readonly TranscriptRow[]> {
    const rows: TranscriptRow[] = [];
    let count = 0;
    for (const each of this.#waiting) {
      if (!("use" in each)) rows.push(each);
      else {
        const isWaiting = each.use.result === null && !isForced;
        if (isWaiting && [...this.#calls.values()].includes(each)) break;
        const { place, index, callId, use, speaker } = each;
        rows.push({
          ...place,
          ...visibleContent(yield* toolRow(use, place.tsMs, this.#options)),
          index,
          callId,
          chapter: null,
          speaker,
          resultSeq: each.use.resultSeq,
        });
      }
      count += 1;
    }
    this.#waiting = this.#waiting.slice(count);
    if (isForced) this.#calls.clear();
    return rows;
  }
}

function noteTitle({ source }: Fields): string {
  if (source === "flush") return "Memory flush";
  return source === "continue" ? "Continue" : "From the program";
}

function* thinkingRow({ thinking, redacted }: Fields): Steps<RowContent | null> {
  const text = textOf(thinking);
  const base = { kind: "thinking", title: "Thinking", badges: [], fold: "closed" } as const;
  if (redacted === true || text.trim() === "")
    return redacted === true ? { ...base, detail: "encrypted by the provider", fold: "none", tree: [] } : null;
  const badges: readonly RowBadge[] = [{ text: sizeText(text.length), tone: "plain" }];
  return { ...base, badges, detail: shortText(plainWords(text), 80), tree: yield* markdownTree(text) };
}

/** Leaves the marks of Markdown out of the beginning of a text. */
function plainWords(text: string): string {
  return text
    .slice(0, 400)
    .replaceAll(/\*\*|`|^#{1,6} /gm, "")
    .trim();
}

/** A reply that did not end by itself says so. */
function replyBadges({ stopReason, recovered, errorMessage }: Fields): readonly RowBadge[] {
  const error = textOf(errorMessage);
  if (recovered === true) return [{ text: "cut off by a crash", tone: "warning" }];
  if (stopReason === "aborted") return [{ text: "cut off", tone: "warning" }];
  if (stopReason === "length") return [{ text: "cut off at the output limit", tone: "warning" }];
  if (stopReason !== "error" && error === "") return [];
  return [{ text: error === "" ? "error" : `error: ${shortText(error, 240)}`, tone: "error" }];
}
