import type { Patch } from "./template.ts";
import type { FormText } from "./wire-node.ts";

/**
 * A piece of a request: text, a part by its hash, a run of messages, or one message in a form by its number. That form is its newest from then on. Between messages that follow each other stands the separator.
 */
export type FrameEntry =
  | string
  | {
      /** The hash of a part that the log has. */
      readonly part: string;
    }
  | FrameRun
  | {
      /** The id of a message that the log has. */
      readonly id: string;
      /** The number of its form; 0 is the JSON of its record. */
      readonly form: number;
    };

/** Messages that follow each other, each in its newest form. */
export interface FrameRun {
  /** The id of the last message of the run. */
  readonly last: string;
  /** How many messages the run has, counted back from `last` by their parents. */
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
  /** How the call ended: `answered`, `partial`, `failed`, `aborted` or `overflowed`. */
  readonly outcome: string;
  /** The SHA-256 of the body that was sent, in hexadecimal. `rebuildRequest` checks against it when it is there. */
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
  /** The pieces that the body is rebuilt from, in order. Empty where nothing of the body may be kept. */
  readonly frame: readonly FrameEntry[];
  /** Left out: a comma. */
  readonly separator?: string;
  /**
   * The frame is of a body that was not read: it has one entry, in base64, and none where the body is larger than 1 MiB. It has
   * none either for a body whose frame would be larger than a record.
   */
  readonly encoding?: "base64";
  /** The message that the reply is kept as. */
  readonly replyId?: string;
  /** The id that the provider gave the reply; absent when it gave none. */
  readonly responseId?: string;
  /** The hash of the tools of the request; absent where it has none. */
  readonly toolsHash?: string;
  readonly [field: string]: unknown;
}

/** Data of a `throughline.prompt`: a part of requests, whole or as another one with something put in place of its middle. */
export type PromptData = {
  /** The member of the request that holds the part, such as `tools`, or `system`. */
  readonly name: string;
  /** The hash that frames name it by; a piece of a part that is larger than 4 Mi characters adds its index, as `.0`. */
  readonly hash: string;
} & (
  | {
      /** The whole text. */
      readonly text: string;
    }
  | {
      /** The hash of the part that the patch changes. */
      readonly base: string;
      /** What makes the text of the base's. */
      readonly patch: Patch;
    }
);
