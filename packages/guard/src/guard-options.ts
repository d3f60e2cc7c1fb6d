import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { Actual, Calibration, ModelName, TokenCounter } from "@throughline/tokens/internal";
import type { ContextEstimate } from "@throughline/tokens";
import type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
import type { Remedy } from "./guard-steps.ts";
import type { LearnedLimits } from "./learned-limits.ts";
import type { OverflowClassification, OverflowKind } from "./overflow.ts";
import type { ReplyFacts } from "./read-reply.ts";
import type { ResultLimits } from "./truncate-results.ts";

/** What is sent to a model, in the wire shape of its provider. */
export interface GuardRequest {
  /** The messages, in the provider's shape. */
  readonly messages: readonly unknown[];
  /** The system prompt, where it is no message. @default none */
  readonly system?: string | null;
  /** The tools, in the provider's shape. @default none */
  readonly tools?: readonly unknown[];
  /** Null when the provider's own default holds. @default 8192 */
  readonly maxOutputTokens?: number | null;
}

/** A request as the guard hands it to the caller's function. */
export interface GuardedRequest {
  /** The messages as they are to be sent. */
  readonly messages: readonly unknown[];
  /** The system prompt; null for none. */
  readonly system: string | null;
  /** Only there when tools were given. */
  readonly tools?: readonly unknown[];
  /** The most tokens that the model may write; null leaves it to the provider. */
  readonly maxOutputTokens: number | null;
}

/** What a call gets, and how it returns what has arrived. */
export interface CallContext {
  /** From 0. */
  readonly attempt: number;
  /** Ends the call; null where the caller gave none. */
  readonly signal: AbortSignal | null;
  /** To be called with everything received so far; what is kept here is not lost when the answer breaks off. */
  keep(partial: unknown): void;
}

/** The request that a compaction has to make smaller, and by how much. */
export interface CompactionRequest extends GuardedRequest {
  /** What does not fit: the prompt, the prompt with the output, bytes, or one item. */
  readonly reason: OverflowKind;
  /** Tokens that system, tools and messages may have. Null when no window is known. */
  readonly targetTokens: number | null;
  /** What the provider said the request has; null when it did not. */
  readonly observedTokens: number | null;
  /** Estimates messages, corrected by what the provider said. */
  readonly estimate: (messages: readonly unknown[]) => number;
  /** Ends the compaction; null where the caller gave none. */
  readonly signal: AbortSignal | null;
}

/** Replaces old messages by a summary. Null when there is nothing to compact. */
export type CompactMessages = (
  request: CompactionRequest,
) => Promise<{ readonly messages: readonly unknown[]; readonly recordIds?: RecordIdsOfMessages } | null>;

/** Counts a request with the provider's own endpoint. */
type CountRequest = (request: GuardedRequest, signal: AbortSignal | null) => Promise<number>;

/** What one turn of the user has used up; one for all calls of the turn. */
export interface GuardTurn {
  /** Compactions of this turn so far. The guard counts them up. */
  compactions: number;
}

/** A turn of the user begins. */
export function createGuardTurn(): GuardTurn {
  return { compactions: 0 };
}

/** Options of `guardCall`. */
export interface GuardOptions<Reply> {
  /** The request as it is wanted. */
  readonly request: GuardRequest;
  /** The provider and the model that are asked. */
  readonly model: ModelName;
  /** Counts the tokens of a request. */
  readonly counter: TokenCounter;
  /** Asks the model. */
  readonly call: (request: GuardedRequest, context: CallContext) => Promise<Reply>;
  /** The model's window; null and 0 stand for unknown. @default what was learned, else unknown */
  readonly windowTokens?: number | null;
  /** The ratio of real tokens to counted ones. @default emptyCalibration */
  readonly calibration?: Calibration;
  /** What a provider measured of the first messages; see `lastActual`. @default null */
  readonly actual?: Actual | null;
  /** Used when the estimate lies between 85 and 100 % of what fits. @default none */
  readonly countTokens?: CountRequest | null;
  /** Makes the messages smaller by a summary, where shortening is not enough. @default none */
  readonly compact?: CompactMessages | null;
  /** What the turn has used up, shared by its calls. @default a new one: one compaction at most in this call */
  readonly turn?: GuardTurn;
  /** Calls after the first; one after a kind's own cure is not counted. @default 2 */
  readonly maxRetries?: number;
  /** Below so much room for the answer the prompt is shortened instead. @default 1024 */
  readonly leastOutputTokens?: number;
  /** How long tool results may stay in the stage that shortens them. @default shares of the window */
  readonly resultLimits?: ResultLimits & {
    /** Whether a shortened result keeps its beginning, or its beginning and its end. */
    readonly keep?: "head" | "head-and-tail";
  };
  /** What errors have told before. @default nothingLearned */
  readonly limits?: LearnedLimits;
  /** What was shortened for earlier requests of the session; applied again before anything else. @default [] */
  readonly keptChanges?: readonly GuardChange[];
  /** The records that the messages came from, for the changes that name them. @default none */
  readonly recordIds?: RecordIdsOfMessages;
  /** Says why a reply ended and what it used. @default the shapes of the three SDKs */
  readonly readReply?: (reply: Reply) => ReplyFacts;
  /** Ollama: asks the server how large the window of the loaded model is. @default none */
  readonly readWindow?: ((signal: AbortSignal | null) => Promise<number | null>) | null;
  /** Called with what the guard does. What it throws is ignored. @default none */
  readonly onEvent?: (event: GuardEvent) => void;
  /** Ends the call, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

const { callback, integer, list, number, object, objectOf, objectWith, oneOf, orNull, required, signal, text } =
  optionKinds;

/** The kinds of the options of `guardCall`. */
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

/** How one call, or the look before it, ended. */
export interface GuardAttempt {
  /** Null when no call was made: the look before the first one said that it cannot fit. */
  readonly attempt: number | null;
  /** What had been done to the request. */
  readonly remedies: readonly Remedy[];
  /** The estimate of the request. */
  readonly estimatedTokens: number;
  /** How it ended; `over` is a request that was not sent. */
  readonly outcome: "answered" | "overflowed" | "broke-off" | "failed" | "over";
  /** What the error means for the window; null when there was none. */
  readonly overflow: OverflowClassification | null;
}

/** What the guard did at a stage of a call. */
export type GuardEvent =
  /** Each stage: a call is about to be made, or a request was found too large without one. */
  | ({
      readonly name: "guard.attempt";
      /** The estimate of the request. */
      readonly estimate: ContextEstimate;
      /** The window that counts; null when none is known. */
      readonly windowTokens: number | null;
    } & Pick<GuardAttempt, "attempt" | "remedies">)
  /** The provider, or the estimate, says that the request does not fit. */
  | {
      readonly name: "guard.overflow";
      /** The attempt, from 0; null when no call was made. */
      readonly attempt: number | null;
      /** What does not fit, and by how much. */
      readonly overflow: OverflowClassification;
    }
  /** The request was made smaller. */
  | {
      readonly name: "guard.shrunk";
      /** What was done to the request. */
      readonly remedy: Remedy;
      /** What was made smaller by it. */
      readonly changes: readonly GuardChange[];
      /** The estimate of the request afterwards. */
      readonly tokens: number;
    }
  /** A remedy made nothing smaller, or failed. */
  | {
      readonly name: "guard.no-progress";
      /** What was tried. */
      readonly remedy: Remedy;
      /** Why it failed; null when it only made nothing smaller. */
      readonly cause: unknown;
    }
  /** An error named a limit that was not known. */
  | {
      readonly name: "guard.learned";
      /** All limits that are known now. */
      readonly limits: LearnedLimits;
    }
  /**
   * A reply whose count is too low for its prompt, by an estimate that rests on earlier ones, without proof: old servers
   * leave the cached part out.
   */
  | {
      readonly name: "guard.truncation-suspected";
      /** The tokens that the provider reported. */
      readonly promptTokens: number;
      /** The estimate of the prompt. */
      readonly estimate: ContextEstimate;
    }
  /** The provider could not count the request; the estimate decides. */
  | {
      readonly name: "guard.count-failed";
      /** The error of the count. */
      readonly cause: unknown;
    }
  /** The summarizer failed, and the messages were left out without a summary. */
  | {
      readonly name: "guard.summary-failed";
      /** The error of the summarizer. */
      readonly cause: unknown;
      /** The number of messages that were left out. */
      readonly droppedMessages: number;
    };

/** How a guarded call ended, with its reply and what was changed. */
export interface GuardOutcome<Reply> {
  /** `partial`: the answer ran into the end of the window; keep it, compact, and continue once. */
  readonly outcome: "answered" | "partial";
  /** Null when a stream broke off with an error. */
  readonly reply: Reply | null;
  /** What the call kept of an answer that broke off; null otherwise. */
  readonly partial: unknown;
  /** Of a partial answer. */
  readonly overflow: OverflowClassification | null;
  /** As it was sent. */
  readonly request: GuardedRequest;
  /** The records that the messages of `request` came from. */
  readonly recordIds: RecordIdsOfMessages;
  /** What this call shortened; `keptChanges` are not repeated. Empty when the request was sent as it came. */
  readonly changes: readonly GuardChange[];
  /** The attempts in their order, the look before the first call included. */
  readonly attempts: readonly GuardAttempt[];
  /** The limits that are known now, to be given to the next call. */
  readonly limits: LearnedLimits;
  /** Of the request as it was sent. */
  readonly estimate: ContextEstimate;
}
