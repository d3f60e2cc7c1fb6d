import type { StoredRecord } from "@throughline/core";
import { isFailedTool, isFields, touchedFiles } from "@throughline/core/internal";
import { blocksOf } from "./block-nodes.ts";
import { promptTitle } from "./prompt-title.ts";
import type { RowOptions } from "./row-options.ts";

/** States what happened from one prompt to the next. */
export interface Chapter {
  /** Numbers the chapters from 1. */
  readonly number: number;
  readonly seq: number;
  readonly title: string;
  tools: number;
  errors: number;
  /** Counts the files that calls wrote, each once. */
  files: number;
}

/** Finds the chapters of a session in its records, which come in the order of their seq. */
export class ChapterFinder {
  readonly chapters: Chapter[] = [];
  readonly #options: Pick<RowOptions, "promptText">;
  #paths = new Set<string>();

  constructor(options: Pick<RowOptions, "promptText">) {
    this.#options = options;
  }

  take({ record, side, seq }: Pick<StoredRecord, "record" | "side" | "seq">): void {
    if (side) return;
    const title = promptTitle(record, this.#options);
    if (title !== null) {
      this.chapters.push({ number: this.chapters.length + 1, seq, title, tools: 0, errors: 0, files: 0 });
      this.#paths = new Set();
      return;
    }
    const chapter = this.chapters.at(-1);
    if (chapter === undefined) return;
    const { message } = record;
    const blocks = blocksOf(isFields(message) ? message["content"] : null);
    chapter.tools += blocks.filter(({ type }) => type === "toolCall").length;
    if (isFailedTool(record)) chapter.errors += 1;
    for (const { path } of touchedFiles(record)) this.#paths.add(path);
    chapter.files = this.#paths.size;
  }
}
