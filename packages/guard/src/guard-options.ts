import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { Actual, Calibration, ModelName, TokenCounter } from "@throughline/tokens/internal";
import type { ContextEstimate } from "@throughline/tokens";
import type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
import type { Remedy } from "./guard-steps.ts";
import type { LearnedLimits } from "./learned-limits.ts";
import type { OverflowClassification, OverflowKind } from "./overflow.ts";
import type { ReplyFacts } from "./read-reply.ts";
import type { ResultLimits } from "./truncate-results.ts";

/** Holds a request in the wire shape of its provider. */
export interface GuardRequest {
  /** Holds the messages, in the provider's shape. */
  readonly messages: readonly unknown[];
  /** Holds the system prompt, for providers that keep it outside of the messages. @default none */
  readonly system?: string | null;
  /** Holds the tools, in the provider's shape. @default none */
  readonly tools?: readonly unknown[];
  /** Limits the tokens that the model may write. Null leaves the limit to the provider. @default 8192 */
  readonly maxOutputTokens?: number | null;
}

/** Holds a request as the guard passes it to the caller's function. */
export interface GuardedRequest {
  /** Holds the messages to send. */
  readonly messages: readonly unknown[];
  /** Holds the system prompt; null for none. */
  readonly system: string | null;
  /** Holds the tools; absent when the caller passed none. */
  readonly tools?: readonly unknown[];
  /** Limits the tokens that the model may write. Null leaves the limit to the provider. */
  readonly maxOutputTokens: number | null;
}

/** Passes a call its attempt number and its signal, and receives partial answers. */
export interface CallContext {
  /** Counts the calls, from 0. */
  readonly attempt: number;
  /** Ends the call; null when the caller passed no signal. */
  readonly signal: AbortSignal | null;
  /**
   * Stores everything received so far. The call should use it while it streams, so that a partial answer survives a
   * break.
   */
  keep(partial: unknown): void;
}

/** Describes the request that a compaction has to make smaller, and its target. */
export interface CompactionRequest extends GuardedRequest {
  /** States what does not fit: the prompt, the prompt with the output, bytes, or one item. */
  readonly reason: OverflowKind;
  /** Limits the tokens of system, tools and messages together. Null when no window is known. */
  readonly targetTokens: number | null;
  /** Holds the prompt size that the provider stated, in tokens; null when it stated none. */
  readonly observedTokens: number | null;
  /** Estimates the tokens of messages, corrected by the provider's figures. */
  readonly estimate: (messages: readonly unknown[]) => number;
  /** Ends the compaction; null when the caller passed no signal. */
  readonly signal: AbortSignal | null;
}

/** Replaces old messages by a summary. Resolves to null when nothing can be compacted. */
export type CompactMessages = (
  request: CompactionRequest,
) => Promise<{ readonly messages: readonly unknown[]; readonly recordIds?: RecordIdsOfMessages } | null>;

/** Counts the tokens of a request with the provider's own endpoint. */
type CountRequest = (request: GuardedRequest, signal: AbortSignal | null) => Promise<number>;

/** Counts what one turn has used up. All calls of the turn share one object. */
export interface GuardTurn {
  /** Counts the compactions of this turn. The guard increments it. */
  compactions: number;
}

/** Creates the counters of a new turn. */
export function createGuardTurn(): GuardTurn {
  return { compactions: 0 };
}

/** Sets the request, the model call and the limits of `guardCall`. */
export interface GuardOptions<Reply> {
  /** Holds the request as the caller wants it. */
  readonly request: GuardRequest;
  /** Names the provider and the model that are asked. */
  readonly model: ModelName;
  /** Counts the tokens of a request. */
  readonly counter: TokenCounter;
  /** Asks the model with the request that the guard chose. */
  readonly call: (request: GuardedRequest, context: CallContext) => Promise<Reply>;
  /** Sets the model's window, in tokens. Null and 0 mean unknown. @default the learned window, else unknown */
  readonly windowTokens?: number | null | undefined;
  /** Holds the ratio of real tokens to counted tokens. @default emptyCalibration */
  readonly calibration?: Calibration | undefined;
  /** Holds the provider's measurement of the first messages; see `lastActual`. @default null */
  readonly actual?: Actual | null | undefined;
  /** Counts the request at the provider when the estimate is between 85 and 100 % of the limit. @default none */
  readonly countTokens?: CountRequest | null | undefined;
  /** Replaces old messages by a summary when shortening is not enough. @default none */
  readonly compact?: CompactMessages | null | undefined;
  /** Counts what the turn has used up, shared by its calls. @default a new one: one compaction at most in this call */
  readonly turn?: GuardTurn | undefined;
  /** Limits the calls after the first one. A call after a kind's own cure is not counted. @default 2 */
  readonly maxRetries?: number | undefined;
  /**
   * Sets the least output budget that is useful, in tokens. When less room is left, the prompt is shortened instead.
   * @default 1024
   */
  readonly leastOutputTokens?: number | undefined;
  /** Limits tool results in the stage that shortens them. @default shares of the window */
  readonly resultLimits?:
    | (ResultLimits & {
        /** States whether a shortened result keeps its beginning, or its beginning and its end. */
        readonly keep?: "head" | "head-and-tail";
      })
    | undefined;
  /** Holds the limits that earlier errors stated. @default nothingLearned */
  readonly limits?: LearnedLimits | undefined;
  /**
   * Holds the changes of earlier requests of the session. The guard applies them again before any other step.
   * @default []
   */
  readonly keptChanges?: readonly GuardChange[] | undefined;
  /** Lists the records that the messages came from, so that changes can name them. @default none */
  readonly recordIds?: RecordIdsOfMessages | undefined;
  /** Reads the stop reason and the usage of a reply. @default the shapes of the three SDKs */
  readonly readReply?: ((reply: Reply) => ReplyFacts) | undefined;
  /** Asks an Ollama server for the window of the loaded model, in tokens. @default none */
  readonly readWindow?: (((signal: AbortSignal | null) => Promise<number | null>) | null) | undefined;
  /** Receives the events of the guard. Errors that the function throws are ignored. @default none */
  readonly onEvent?: ((event: GuardEvent) => void) | undefined;
  /** Ends the call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

const { callback, integer, list, number, object, objectOf, objectWith, oneOf, orNull, required, signal, text } =
  optionKinds;

export const guardTable: OptionTable<GuardOptions<never>> = {
  request: required(
    objectOf<GuardRequest>({
      messages: required(list),
      system: orNull(text),
      tools: list,
      maxOutputTokens: orNull(integer({ min: 1 })),
    }),
  ),
  model: required(object),
  counter: required(objectWith("countText", "countMessages")),
  call: required(callback),
  windowTokens: orNull(number({ min: 0 })),
  calibration: object,
  actual: orNull(object),
  countTokens: orNull(callback),
  compact: orNull(callback),
  turn: objectOf<GuardTurn>({ compactions: required(integer({ min: 0 })) }),
  maxRetries: integer({ min: 0 }),
  leastOutputTokens: number({ min: 0 }),
  resultLimits: objectOf<ResultLimits & { readonly keep?: "head" | "head-and-tail" }>({
    eachCharacters: required(number({ min: 0 })),
    totalCharacters: required(number({ min: 0 })),
    keep: oneOf(["head", "head-and-tail"]),
  }),
  limits: object,
  keptChanges: list,
  recordIds: list,
  readReply: callback,
  readWindow: orNull(callback),
  onEvent: callback,
  signal,
};

/** Describes how one call, or the estimate before it, ended. */
export interface GuardAttempt {
  /** Counts the calls, from 0. Null when no call was made, because the estimate already exceeded the window. */
  readonly attempt: number | null;
  /** Lists the remedies that were applied to the request before this attempt. */
  readonly remedies: readonly Remedy[];
  /** Holds the estimate of the request, in tokens. */
  readonly estimatedTokens: number;
  /** States how the attempt ended; `over` is a request that was not sent. */
  readonly outcome: "answered" | "overflowed" | "broke-off" | "failed" | "over";
  /** Holds the classification of the error; null when no overflow occurred. */
  readonly overflow: OverflowClassification | null;
}

/** Reports what the guard did at a stage of a call. */
export type GuardEvent =
  /** Precedes each call, and reports a request that was too large to send. */
  | ({
      readonly name: "guard.attempt";
      /** Holds the estimate of the request. */
      readonly estimate: ContextEstimate;
      /** Holds the window that the guard compares with; null when no window is known. */
      readonly windowTokens: number | null;
    } & Pick<GuardAttempt, "attempt" | "remedies">)
  /**
   * Reports that a call overflowed. The provider stated the overflow, or the guard inferred it from the reply or by a
   * probe.
   */
  | {
      readonly name: "guard.overflow";
      /** Counts the calls, from 0; null when no call was made. */
      readonly attempt: number | null;
      /** States what does not fit, and by how much. */
      readonly overflow: OverflowClassification;
    }
  /** Reports that the request was made smaller. */
  | {
      readonly name: "guard.shrunk";
      /** Names the remedy that was applied. */
      readonly remedy: Remedy;
      /** Lists the changes that the remedy made. */
      readonly changes: readonly GuardChange[];
      /** Holds the estimate of the request afterwards, in tokens. */
      readonly tokens: number;
    }
  /** Reports a remedy that made nothing smaller, or failed. */
  | {
      readonly name: "guard.no-progress";
      /** Names the remedy that was tried. */
      readonly remedy: Remedy;
      /** Holds the error of the remedy; null when it only made nothing smaller. */
      readonly cause: unknown;
    }
  /** Reports that an error named a limit that was not known before. */
  | {
      readonly name: "guard.learned";
      /** Holds all limits that are known now. */
      readonly limits: LearnedLimits;
    }
  /**
   * Reports a reply whose token count is too low for its prompt. The estimate rests on earlier measurements, and the
   * truncation is not proven: old servers leave the cached part out of their count.
   */
  | {
      readonly name: "guard.truncation-suspected";
      /** Holds the prompt tokens that the provider reported. */
      readonly promptTokens: number;
      /** Holds the estimate of the prompt. */
      readonly estimate: ContextEstimate;
    }
  /** Reports that the provider could not count the request. The estimate decides then. */
  | {
      readonly name: "guard.count-failed";
      /** Holds the error of the count. */
      readonly cause: unknown;
    }
  /** Reports that the summarizer failed and the messages were left out without a summary. */
  | {
      readonly name: "guard.summary-failed";
      /** Holds the error of the summarizer. */
      readonly cause: unknown;
      /** Counts the messages that were left out. */
      readonly droppedMessages: number;
    };

/** Describes how a guarded call ended, with its reply and its changes. */
export interface GuardOutcome<Reply> {
  /**
   * States how the call ended. `partial` means that the answer reached the end of the window: keep it, compact, and
   * continue once.
   */
  readonly outcome: "answered" | "partial";
  /** Holds the reply; null when a stream broke off with an error. */
  readonly reply: Reply | null;
  /** Holds what the call kept of an answer that broke off; null otherwise. */
  readonly partial: unknown;
  /** Holds the overflow that ended a partial answer; null for a whole answer. */
  readonly overflow: OverflowClassification | null;
  /** Holds the request as it was sent. */
  readonly request: GuardedRequest;
  /** Lists the records that the messages of `request` came from. */
  readonly recordIds: RecordIdsOfMessages;
  /**
   * Lists what this call shortened, without the changes of `keptChanges`. Empty when the request was sent unchanged.
   */
  readonly changes: readonly GuardChange[];
  /** Lists the attempts in order, including the estimate before the first call. */
  readonly attempts: readonly GuardAttempt[];
  /** Holds the limits that are known now, for the next call. */
  readonly limits: LearnedLimits;
  /** Holds the estimate of the request as it was sent. */
  readonly estimate: ContextEstimate;
}
