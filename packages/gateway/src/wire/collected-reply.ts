import type { Fields } from "@throughline/core/internal";

export interface CollectedReply {
  /** Holds the reply in the form of an unstreamed answer. Null when no part of it arrived. */
  readonly reply: Fields | null;
  /** Is true when the provider ended the reply. An aborted stream has no end. */
  readonly isEnded: boolean;
  /** Holds an error event that replaced the rest of the stream, unchanged. */
  readonly error: string | null;
  /** Lists events of unknown types unchanged, so that the call's record keeps them. */
  readonly unknown: readonly string[];
}
