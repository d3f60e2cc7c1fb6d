import type { OverflowKind } from "./overflow.ts";

/**
 * Records a part of a request that was made smaller, as plain JSON. The caller keeps the change and passes it with the
 * next request (`keptChanges`). The same input then gives the same bytes, which provider caches rely on. A restart does
 * not overflow again.
 */
export interface GuardChange {
  /** Holds the id of the record that the message came from; null when the caller passed no record ids. */
  readonly recordId: string | null;
  /** Holds the index of the message in the request. */
  readonly index: number;
  /** Holds the id of the tool call whose result was shortened; null for other changes. */
  readonly callId: string | null;
  /** States which part of the request was made smaller. */
  readonly what: "tool-result" | "media" | "thinking" | "history" | "output-budget";
  /** States the kind of the overflow that caused the change. */
  readonly reason: OverflowKind;
  /** Holds the size of the part before the change, in bytes. */
  readonly beforeBytes: number;
  /** Holds the size of the part after the change, in bytes. */
  readonly afterBytes: number;
  /** Locates the part inside the message; absent for changes to the whole message. */
  readonly path?: readonly (string | number)[];
  /** Counts the messages that were replaced, from the start of the request; only for `history`. */
  readonly leftOutMessages?: number;
  /**
   * States how many messages were replaced for one call, when the model's thinking is bound to the history. `first`
   * identifies the first of them. Absent for models that bind no thinking.
   */
  readonly instead?: {
    /** Counts the messages that were replaced. */
    readonly messages: number;
    /** Holds the fingerprint of the first replaced message. */
    readonly first: string;
  };
  /** Holds the fingerprints of the thinking blocks that were removed; only for `thinking`. */
  readonly blocks?: readonly string[];
  /** States which ends of a tool result were kept, and how long it was; only for `tool-result`. */
  readonly kept?: {
    /** Counts the characters that stay at the beginning. */
    readonly headCharacters: number;
    /** Counts the characters that stay at the end. */
    readonly tailCharacters: number;
    /** Counts the characters of the result before it was shortened. */
    readonly ofCharacters: number;
  };
}

/** Lists, by index, the ids of the records that the messages came from. */
export type RecordIdsOfMessages = readonly (string | null)[];

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
