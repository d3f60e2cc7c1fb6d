import type { Patch } from "./template.ts";
import type { FormText } from "./wire-node.ts";

/**
 * A piece of a request: text, a part by its hash, a run of messages, or one message in a form by its number. That form is its newest from then on. Between messages that follow each other stands the separator.
 */
export type FrameEntry = string | { readonly part: string } | FrameRun | { readonly id: string; readonly form: number };

/** Messages that follow each other, each in its newest form. */
export interface FrameRun {
  readonly last: string;
  readonly count: number;
  /** The numbers of the forms of as many of the newest of them, where these are others. */
  readonly forms?: readonly number[];
  /** The first of them: earlier versions state it. */
  readonly first?: string;
}

/** A summary that was sent in place of the beginning of a conversation. */
export interface CompactedHistory {
  /** The id of the last message that it stands for. */
  readonly last: string;
  /** The messages in their place, as JSON; absent where an earlier exchange with this `last` states them. */
  readonly text?: string;
}

/** Data of a `throughline.exchange`, as far as requests are rebuilt from it. */
export interface ExchangeData {
  /** Left out: the id of the record without `x-`. */
  readonly callId?: string;
  /** How often the same body was sent before, without an answer. Left out: 0. */
  readonly attempt?: number;
  readonly outcome: string;
  readonly requestSha256?: string;
  /** Of a request that was sent in place of another one: the hash of that. */
  readonly rebuiltFrom?: string;
  /** Of such a request whose conversation was summed up. */
  readonly compacted?: CompactedHistory;
  /** Up to where the log was known to whoever wrote the frame: forms of later records do not count in it. */
  readonly knownSeq: number;
  /** Forms that the request was the first to show, by message. */
  readonly forms?: Readonly<Record<string, FormText>>;
  /** Messages whose text the exchange holds itself. */
  readonly copies?: readonly string[];
  readonly frame: readonly FrameEntry[];
  /** Left out: a comma. */
  readonly separator?: string;
  /** The frame is of a body that was not read: it has one entry, in base64, and none where the body is larger than 1 MiB. */
  readonly encoding?: "base64";
  /** The message that the reply is kept as. */
  readonly replyId?: string;
  readonly responseId?: string;
  /** The hash of the tools of the request; absent where it has none. */
  readonly toolsHash?: string;
  readonly [field: string]: unknown;
}

/** Data of a `throughline.prompt`: a part of requests, whole or as another one with something put in place of its middle. */
export type PromptData = { readonly name: string; readonly hash: string } & (
  | { readonly text: string }
  | { readonly base: string; readonly patch: Patch }
);
