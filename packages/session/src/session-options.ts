import type {
  AgentTool,
  AgentToolCall,
  AssistantMessage,
  Clock,
  ImageBlock,
  RandomSource,
  RecordDraft,
  SessionEntry,
  SessionRef,
  SessionStore,
  StoredRecord,
  TextBlock,
  TurnRequest,
} from "@throughline/core";
import type { SessionModel, UnknownBlock } from "@throughline/core/internal";
import type { Calibration, TokenCounter } from "@throughline/tokens/internal";
import type { ContextEstimate, Gauge, TokenEstimator } from "@throughline/tokens";
import type { ResetPolicy, SendPolicy } from "@throughline/policy";
import type { OverflowKind, ResultSettings } from "@throughline/guard/internal";
import type { HoldBack } from "./held-deltas.ts";
import type { SessionEventListener } from "./session-event.ts";
import type { TurnOwners } from "./process-owners.ts";

export type { SessionModel } from "@throughline/core/internal";

/** Holds the content of a user message or of a tool's result. */
export type SessionContent = string | readonly (TextBlock | ImageBlock | UnknownBlock)[];

/** Describes a call of a tool that is about to run. */
interface ToolCallRequest {
  /** Holds the id of the call, as the model stated it. */
  readonly id: string;
  /** Holds the name of the tool. */
  readonly name: string;
  /** Holds a copy of the arguments for the hook. They match the tool's schema. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Describes a decision on a call. The log stores it as `throughline.approval`. */
export interface ApprovalFacts {
  /**
   * States the decision. `once` allows this call, and `session` also those that follow. `no` and `cancel` refuse the
   * call.
   * @default `once` or `no`
   */
  readonly decision?: "once" | "session" | "no" | "cancel" | undefined;
  /**
   * States who decided: a person who was asked, an earlier answer, a setting, a flag, the program that asked, or the
   * deadline of the question.
   * @default not stated
   */
  readonly by?: "person" | "session" | "setting" | "flag" | "program" | "deadline" | undefined;
  /** Names the file that the call is about. */
  readonly path?: string | undefined;
  /** Holds the words of the person who refused. */
  readonly words?: string | undefined;
  /** Holds the SHA-256 of the file as it was approved, in hex. */
  readonly beforeSha256?: string | undefined;
  /** Holds the SHA-256 of the file as the call would leave it, in hex. */
  readonly afterSha256?: string | undefined;
  /** States when the question was shown, in UTC milliseconds. @default when the hook was called */
  readonly askedMs?: number | undefined;
}

/**
 * Answers whether a call may run. With `true` or `approve` the call runs. With `refuse` it does not run, and the model
 * reads the reason.
 */
export type ApprovalAnswer =
  | true
  | {
      /** Allows the call and adds these facts to its approval record. */
      readonly approve: ApprovalFacts;
    }
  | ({
      /** States why the call does not run. The model reads this text as the call's result. */
      readonly refuse: string;
    } & ApprovalFacts);

/** Decides on a call. `"unasked"` allows a call that needs no question. */
type ToolDecision =
  | ApprovalAnswer
  | "unasked"
  | {
      /**
       * Leaves the decision to a later time. The turn ends with the outcome `waiting`, and `session.resume` continues it
       * in any process. The facts are for the person who decides, at most 16,384 characters as JSON.
       */
      readonly wait: Readonly<Record<string, unknown>> | undefined;
      /**
       * States when the call counts as refused without a decision, in UTC milliseconds. No timer runs: each process
       * compares the time when it lists, decides or resumes.
       * @default never
       */
      readonly expiresAtMs?: number | undefined;
    };

/** Decides whether a call of a tool may run. For a refused call the model reads the reason. */
export type ApproveTool = (call: ToolCallRequest, context: AgentToolCall) => ToolDecision | Promise<ToolDecision>;

/** Holds the facts that a function for the system prompt receives. */
interface SystemPromptContext {
  /** Names the session for which the prompt is created. */
  readonly ref: SessionRef;
  /** Holds the turn id; null outside of a turn, and when the prompt is only counted. */
  readonly turnId: string | null;
  /**
   * Holds the gauge of the whole prompt before the call. When the prompt is only counted, the gauge lacks the system
   * prompt being created.
   */
  readonly gauge: Gauge;
}

/** Sets the system prompt of a session: a text, none, or a function of the session. */
export type SystemPrompt = string | null | ((facts: SystemPromptContext) => string | null);

/** Gives a step access to its turn and its session. */
export interface StepContext {
  /** Names the session of the turn. */
  readonly ref: SessionRef;
  /** Holds the id of the session that the key refers to. */
  readonly sessionId: string;
  /** Holds the id of the turn. */
  readonly turnId: string;
  /** Holds the session entry, as this process last read it. */
  readonly entry: SessionEntry;
  /** Holds the model that the turn asks. */
  readonly model: SessionModel;
  /** Holds the gauge of the current prompt. */
  readonly gauge: Gauge;
  /** Aborts when the turn is aborted or another turn has taken over. */
  readonly signal: AbortSignal;
  /**
   * Holds the turn request for direct appends to the store; null after the turn. Call `refresh` after such an append.
   */
  readonly turn: TurnRequest | null;
  /** Counts tokens for the model, with the learned properties of its tokenizer. */
  readonly counter: TokenCounter;
  /** Holds the ratio of real tokens to counted ones, learned from the provider's usage. */
  readonly calibration: Calibration;
  /** Reads records that were appended to the store without `append`. */
  refresh(): Promise<void>;
  /** Reads the current records of the window, in order of seq. */
  records(): Promise<readonly StoredRecord[]>;
  /** Appends records as part of the turn. Later requests of the turn include them. */
  append(drafts: readonly RecordDraft[], options?: StepAppendOptions): Promise<void>;
}

/** Sets the entry fields and the window of a step's append. */
interface StepAppendOptions {
  /** Sets fields of the session entry in the same commit. */
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
  /** Holds the oldest seq that a context still needs. */
  readonly windowFromSeq?: number | undefined;
}

/** Defines work that a turn does beside asking the model. Steps run in the order of the list. */
export interface TurnStep {
  /** Names the step in events: `compaction`, `memory-flush`, … */
  readonly name: string;
  /**
   * States when the step runs. `before-call` steps run before each call, and an error fails the turn. `after-turn`
   * steps run in the background after the turn was closed. Their `append` accepts side records only, and an error
   * becomes an event.
   */
  readonly when: "before-call" | "after-turn";
  /** Does the work. The turn waits for it when `when` is `before-call`. */
  run(context: StepContext): Promise<void>;
}

/** Adds the facts about a request that does not fit, for a compaction. */
interface OverflowContext extends StepContext {
  /** States what does not fit: the prompt, the prompt with the output, bytes, or one item. */
  readonly reason: OverflowKind;
  /** Limits the tokens of system, tools and messages together; null when no window is known. */
  readonly targetTokens: number | null;
  /** Holds the prompt size that the provider stated, in tokens; null when it stated none. */
  readonly observedTokens: number | null;
  /** Holds the estimate of the request that did not fit. */
  readonly estimate: ContextEstimate;
}

/**
 * Makes the window smaller by appending a compaction as part of the turn. Resolves to false when nothing can be
 * compacted.
 */
export type CompactSession = (context: OverflowContext) => Promise<boolean>;

/** Describes a turn that is about to be closed. */
export interface BeforeCloseContext {
  /** Names the session of the turn. */
  readonly ref: SessionRef;
  /** Holds the id of the turn that is about to be closed. */
  readonly turnId: string;
  /** States the outcome with which the turn will be closed. */
  readonly outcome: "done" | "aborted" | "step-limit";
  /** Holds the last reply; null when there is none, or when it is incomplete. */
  readonly reply: AssistantMessage | null;
  /** Holds the session entry, as this process last read it. */
  readonly entry: SessionEntry;
}

/** Decides how a turn is closed. */
export interface ClosingDecision {
  /**
   * Holds records to append after the reply; the model is then asked again. Only for the outcome `done`.
   * @default none: the turn is closed
   */
  readonly askAgain?: readonly RecordDraft[];
  /** Sets fields of the entry together with the end of the turn. @default none */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** Decides how a turn is closed. The function is synchronous and must not throw. */
export type BeforeClose = (closing: BeforeCloseContext) => ClosingDecision;

/** Changes a record before it is stored and before any model sees it. The function must be pure and synchronous. */
export type RedactDraft = (draft: RecordDraft) => RecordDraft;

/** Sets the store, the model, the tools and the policies of `createSessions`. */
export interface SessionsOptions {
  /** Holds the sessions. The caller closes the store. */
  readonly store: SessionStore;
  /** Sets the model that sessions ask unless a turn names another. */
  readonly model: SessionModel;
  /** Sets the system prompt, or a function that returns it before each call. @default null */
  readonly system?: SystemPrompt | undefined;
  /** Lists the tools that the model may call. @default [] */
  readonly tools?: readonly AgentTool[] | undefined;
  /**
   * Decides on each call of a tool before it runs. A refusal, an error, and anything else than an approval keep the
   * call from running; the model reads the reason. Each decision is a record (`throughline.approval`) that the store
   * has acknowledged before the tool runs.
   * @default every call runs
   */
  readonly approveTool?: ApproveTool | undefined;
  /**
   * States whether `approveTool` decides on the parallel calls of a reply one after another, or on all at once.
   * Approved calls run in parallel either way.
   * @default "one-by-one"
   */
  readonly approvals?: "one-by-one" | "parallel" | undefined;
  /**
   * States who writes `session.title` when the first turn is done. `rules` takes it from the first messages of the user
   * that yield one, in the commit that ends the turn. `model` also asks the first of the `summarizers` once, beside the
   * turns: it reads 2,000 characters of the question and 1,000 of the answer. A title that the session has stays.
   * @default "rules"
   */
  readonly titles?: "rules" | "model" | "off" | undefined;
  /** Sets the agent of keys that name none. @default "main" */
  readonly agentId?: string | undefined;
  /** Separates sessions within one store: another namespace sees none of them. @default "" */
  readonly namespace?: string | undefined;
  /** Limits the model calls in one turn. @default 50 */
  readonly maxSteps?: number | undefined;
  /** States whether the calls of one reply run at the same time. @default true */
  readonly parallelTools?: boolean | undefined;
  /** Sets the length of a turn's lease, in milliseconds. The lease is renewed after each third of it. @default 30000 */
  readonly leaseMs?: number | undefined;
  /** Lists the steps around the calls, in order. @default [] */
  readonly steps?: readonly TurnStep[] | undefined;
  /**
   * Compacts the window when a request does not fit and shortening tool results is not enough.
   * @default the guard's own remedies
   */
  readonly compact?: CompactSession | undefined;
  /**
   * States how a history that is longer than the model's window is handled when its session is opened. With `cut`,
   * requests begin at a later turn without asking a model. The session keeps all records, and a later compaction
   * summarizes them. With `compact`, the compaction makes the history fit.
   * @default "cut" without `compact`, else "compact"
   */
  readonly restore?: "cut" | "compact" | undefined;
  /** Sets how tool results are shortened when a request does not fit. @default the guard's own limits */
  readonly results?: ResultSettings | undefined;
  /** Decides how a turn that did not fail is closed. @default the turn is closed */
  readonly beforeClose?: BeforeClose | undefined;
  /**
   * Withholds text of a reply from the stream until it is certain that the text is for the user. When the whole reply
   * is withheld, the turn's `text` is empty; its messages hold the reply.
   * @default none
   */
  readonly holdBack?: HoldBack | undefined;
  /**
   * Sets the percentages of the window at which `threshold.crossed` is emitted before the prompt is sent, once a cycle.
   * @default [90]
   */
  readonly warnAtPercents?: readonly number[] | undefined;
  /**
   * Decides in which sessions the agent may answer, in the form that `readSendPolicy` of the package `policy` returns.
   * A session entry's `sendPolicy` field takes precedence.
   * @default null: answers are allowed unless the entry says `deny`
   */
  readonly sendPolicy?: SendPolicy | null | undefined;
  /**
   * Sets when a session resets automatically, in the form that `readResetPolicy` of the package `policy` returns. The
   * policy is checked before each turn with a new message; the earlier session is archived.
   * @default null: never
   */
  readonly reset?: ResetPolicy | null | undefined;
  /** Names the IANA time zone of daily resets. @default the system's */
  readonly timeZone?: string | undefined;
  /** Changes each record before it is stored and before a model sees it. @default records are stored unchanged */
  readonly redactBeforeAppend?: RedactDraft | undefined;
  /** Receives the events of all sessions. Errors that the function throws are ignored. @default none */
  readonly onEvent?: SessionEventListener | undefined;
  /** Supplies the time of records, leases and policies. @default the system clock */
  readonly clock?: Clock | undefined;
  /** Generates session, turn and record ids. @default the system's random source */
  readonly random?: RandomSource | undefined;
  /** Counts tokens, and learns from the provider's usage across the sessions. @default a new estimator */
  readonly estimator?: TokenEstimator | undefined;
  /**
   * Names this process as the owner of turns, and detects which other owners are gone.
   * @default by the operating system
   */
  readonly owners?: TurnOwners | undefined;
  /**
   * Keeps the text of a reply in the store while it is streamed. A crash then loses at most the last second of it, and
   * other processes can show it. Calls without `onDelta` stream nothing. Has no effect in a store without
   * `partials`.
   * @default true
   */
  readonly partials?: boolean | undefined;
}
