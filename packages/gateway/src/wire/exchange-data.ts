import type { Patch } from "./template.ts";
import type { FormText } from "./wire-node.ts";

/**
 * Describes a piece of a request body: literal text, a part by its hash, a run of messages, or one message in a
 * numbered form. A form is one way in which requests have written the message (`FormText`); a form that an entry
 * numbers becomes the message's newest form. The separator joins consecutive messages.
 */
export type FrameEntry =
  | string
  | {
      /** Names a part by its hash. The log stores a part, such as the tools, once for all requests (`PromptData`). */
      readonly part: string;
    }
  | FrameRun
  | {
      /** Names a message in the log. */
      readonly id: string;
      /** States the number of the form; 0 is the JSON of the message's record. */
      readonly form: number;
    };

/** Describes consecutive messages, each in its newest form unless `forms` states another. */
export interface FrameRun {
  /** Names the last message of the run. */
  readonly last: string;
  /** Counts the messages of the run, backwards from `last` along their parents. */
  readonly count: number;
  /** Lists the form numbers of the last messages of the run, oldest first. All others have their newest form. */
  readonly forms?: readonly number[];
  /** Names the first message of the run. Only earlier versions write it. */
  readonly first?: string;
}

/** Describes a summary that was sent in place of the beginning of a conversation. */
export interface CompactedHistory {
  /** Names the last message that the summary replaces. */
  readonly last: string;
  /** Holds the summary messages as JSON. Absent when an earlier exchange with this `last` states them. */
  readonly text?: string;
}

/** Holds the fields of a `throughline.exchange` record from which `rebuildRequest` restores a request. */
export interface ExchangeData {
  /** States the id of the call. Absent when it equals the record id without `x-`. */
  readonly callId?: string;
  /** Counts the earlier attempts with the same body that got no answer. Absent means 0. */
  readonly attempt?: number;
  /** States how the call ended: `answered`, `partial`, `failed`, `aborted` or `overflowed`. */
  readonly outcome: string;
  /**
   * States the SHA-256 of the body that was sent, in hexadecimal. If present, `rebuildRequest` verifies the body with
   * it.
   */
  readonly requestSha256?: string;
  /** States the SHA-256 of the client's request, if the gateway sent a rebuilt request in its place. */
  readonly rebuiltFrom?: string;
  /** Holds the summary that a rebuilt request contains. */
  readonly compacted?: CompactedHistory;
  /**
   * States the last seq that the writer of the frame had read. A form in a later record is not a newest form in this
   * frame.
   */
  readonly knownSeq: number;
  /** Holds the new forms of messages in this request, by message id. */
  readonly forms?: Readonly<Record<string, FormText>>;
  /**
   * Lists the messages whose text the exchange itself contains. A redaction of such a message must erase the exchange
   * too.
   */
  readonly copies?: readonly string[];
  /** Lists the pieces of the request body in order. Empty when the body must not or cannot be stored. */
  readonly frame: readonly FrameEntry[];
  /** States the text between consecutive messages. Absent means a comma. */
  readonly separator?: string;
  /**
   * Marks the frame of a body that was not parsed. It has one entry in base64, or none for a body above 1 MiB. A body
   * whose frame would exceed a record has no entry either.
   */
  readonly encoding?: "base64";
  /** Names the message of the reply in the log. */
  readonly replyId?: string;
  /** States the provider's id of the reply; absent when the provider gave none. */
  readonly responseId?: string;
  /** States the hash of the request's tools; absent when it has none. */
  readonly toolsHash?: string;
  /** Holds the other fields of the exchange, such as `status` and `errorBody`. */
  readonly [field: string]: unknown;
}

/** Holds the fields of a `throughline.prompt` record: a part of requests as a whole text, or as a patch of a part. */
export type PromptData = {
  /** Names the request member that holds the part, such as `tools`, or `system`. */
  readonly name: string;
  /**
   * States the hash that frames use. A part above 4 Mi characters is stored in pieces, whose hashes end in an index
   * such as `.0`.
   */
  readonly hash: string;
} & (
  | {
      /** Holds the whole text. */
      readonly text: string;
    }
  | {
      /** States the hash of the part that the patch changes. */
      readonly base: string;
      /** Changes the text of the base into the text of this part. */
      readonly patch: Patch;
    }
);
