import type { Fields } from "@throughline/core/internal";

/** What the events of a stream said together. */
export interface CollectedReply {
  /** The reply as the API gives it when nobody asks for a stream; null when nothing of one came. */
  readonly reply: Fields | null;
  /** Whether the provider ended it. */
  readonly isEnded: boolean;
  /** An error that came in place of the rest, as the provider wrote it. */
  readonly error: string | null;
  /** Events that are not known, as they came. */
  readonly unknown: readonly string[];
}
