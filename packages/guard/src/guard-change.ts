import type { OverflowKind } from "./overflow.ts";

/**
 * What was made smaller before a request was sent, as plain JSON. The caller keeps it and passes it with the next
 * request (`keptChanges`). The same input then gives the same bytes, which provider caches rely on, and a restart does
 * not overflow again.
 */
export interface GuardChange {
  /** Of the record the message came from; null when the caller named none. */
  readonly recordId: string | null;
  /** Of the message in the request. */
  readonly index: number;
  /** The id of the tool call whose result was shortened; null for other changes. */
  readonly callId: string | null;
  /** Which part of the request was made smaller. */
  readonly what: "tool-result" | "media" | "thinking" | "history" | "output-budget";
  /** The overflow that it was made smaller for. */
  readonly reason: OverflowKind;
  /** The size of that part before, in bytes. */
  readonly beforeBytes: number;
  /** Its size afterwards, in bytes. */
  readonly afterBytes: number;
  /** Where in the message; absent for changes that concern all of it. */
  readonly path?: readonly (string | number)[];
  /** For the history: how many messages of the request, from its start, were replaced. */
  readonly leftOutMessages?: number;
  /**
   * For a history that a model's thinking was bound to: how many messages were replaced for one call; the first has
   * this fingerprint. Absent where the model binds nothing.
   */
  readonly instead?: {
    /** The number of messages that were replaced. */
    readonly messages: number;
    /** The fingerprint of the first of them. */
    readonly first: string;
  };
  /** For thinking: fingerprints of the blocks that were taken out. */
  readonly blocks?: readonly string[];
  /** For a tool result: what was kept of its ends, and how long it was. */
  readonly kept?: {
    /** Characters that stay at the beginning. */
    readonly headCharacters: number;
    /** Characters that stay at the end. */
    readonly tailCharacters: number;
    /** Characters that the result had. */
    readonly ofCharacters: number;
  };
}

/** Ids of the records behind the messages, by index. */
export type RecordIdsOfMessages = readonly (string | null)[];

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
