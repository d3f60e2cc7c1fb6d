import type { ViewNode } from "./view-tree.ts";

/** Names what a row shows. `prompt` is a message of a person and starts a chapter; `note` was written by a program. */
type RowKind = "prompt" | "note" | "assistant" | "thinking" | "tool" | "command" | "compaction" | "redacted" | "marker";

/** A short fact about a row. The tone is no content: each badge says in words what it means. */
export interface RowBadge {
  readonly text: string;
  readonly tone: "plain" | "error" | "warning" | "added" | "removed";
}

/** A part of a transcript as people read it. It is data: a page and a file show the same rows. */
export interface TranscriptRow {
  /** Holds the seq of the record, whose rows have the same. */
  readonly seq: number;
  /** Numbers the rows of a record from 0. */
  readonly index: number;
  readonly tsMs: number | null;
  readonly kind: RowKind;
  /** Holds plain text, like `detail`: the name of a tool, a model, or what happened. */
  readonly title: string;
  readonly detail: string;
  readonly badges: readonly RowBadge[];
  /** Names the model that wrote the row, or is empty for an unknown one; null for a row of anybody else. */
  readonly speaker: string | null;
  /** States whether the content folds, and how it starts. */
  readonly fold: "none" | "closed" | "open";
  readonly tree: readonly ViewNode[];
  /** States that the current conversation does not contain the record. */
  readonly isOffBranch: boolean;
  /** Is the seq of the record with the result of a call; null without one. */
  readonly resultSeq: number | null;
  /** Is the id of a call; null for every other row, and for a call without an id. */
  readonly callId: string | null;
  /** Numbers the chapter that a prompt starts, from 1; null for other rows. */
  readonly chapter: number | null;
}

/** Holds what a row shows, without its place. */
export type RowContent = Pick<TranscriptRow, "kind" | "title" | "detail" | "badges" | "fold" | "tree">;

/** States how much of a session is shown. */
export type TranscriptLevel = "full" | "compact" | "words";
export const transcriptLevels: readonly TranscriptLevel[] = ["full", "compact", "words"];
