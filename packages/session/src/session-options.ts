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
import type { TurnOwners } from "./turn-owners.ts";

export type { SessionModel } from "@throughline/core/internal";

/** What a user message or a tool's result is made of. */
export type SessionContent = string | readonly (TextBlock | ImageBlock | UnknownBlock)[];

/** A call of a tool that is about to run. */
export interface ToolCallRequest {
  /** The id of the call, as the model gave it. */
  readonly id: string;
  /** The name of the tool that is to run. */
  readonly name: string;
  /** The hook's own copy. They fit the tool's schema. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** What is known of a decision on a call. It is kept in the log as `throughline.approval`. */
export interface ApprovalFacts {
  /** `once`: this call. `session`: also those that follow. `no`, `cancel`: it does not run. @default `once` or `no` */
  readonly decision?: "once" | "session" | "no" | "cancel";
  /** Who decided: a person who was asked, an earlier answer, a setting, or a flag. @default not stated */
  readonly by?: "person" | "session" | "setting" | "flag";
  /** The file the call is about. */
  readonly path?: string;
  /** What the person said, of a refusal. */
  readonly words?: string;
  /** The file as it was approved, and as the call would leave it: SHA-256 in hex. */
  readonly beforeSha256?: string;
  /** The file as the call would leave it: SHA-256 in hex. */
  readonly afterSha256?: string;
  /** When the question was shown. @default when the hook was called */
  readonly askedMs?: number;
}

/** `true` or `approve`: the call runs. `refuse`: it does not, and the model reads why. */
export type ToolDecision =
  | true
  | {
      /** The call runs; its approval record holds these facts. */
      readonly approve: ApprovalFacts;
    }
  | ({
      /** Why the call does not run. The model reads it as the call's result. */
      readonly refuse: string;
    } & ApprovalFacts);

/** Decides on a call of a tool: it may run, or the model reads why it may not. */
export type ApproveTool = (call: ToolCallRequest, context: AgentToolCall) => ToolDecision | Promise<ToolDecision>;

/** What is known when the system prompt of a call is made. */
interface SystemPromptContext {
  /** The session for which the prompt is made. */
  readonly ref: SessionRef;
  /** Null outside of a turn, and where the prompt is only counted. */
  readonly turnId: string | null;
  /** Before the call, of the whole prompt; where the prompt is only counted, without the system prompt being made. */
  readonly gauge: Gauge;
}

/** The system prompt of a session: a text, none, or a function of the session. */
export type SystemPrompt = string | null | ((facts: SystemPromptContext) => string | null);

/** What work around a turn has at hand. */
export interface StepContext {
  /** The session of the turn. */
  readonly ref: SessionRef;
  /** The id of the session behind the key. */
  readonly sessionId: string;
  /** The id of the turn. */
  readonly turnId: string;
  /** As it was last seen. */
  readonly entry: SessionEntry;
  /** The model that the turn asks. */
  readonly model: SessionModel;
  /** Of the prompt as it stands. */
  readonly gauge: Gauge;
  /** Aborted when the turn is aborted or another turn has taken over. */
  readonly signal: AbortSignal;
  /** For appends of one's own to the store; null after the turn. `refresh` then makes them known here. */
  readonly turn: TurnRequest | null;
  /** Counts for the model, and what was learned of its tokenizer. */
  readonly counter: TokenCounter;
  /** The ratio of real tokens to counted ones, learned from the provider's usage. */
  readonly calibration: Calibration;
  /** Takes in what was appended to the store otherwise than by `append`. */
  refresh(): Promise<void>;
  /** The records of the window, in order of seq. Read when it is called. */
  records(): Promise<readonly StoredRecord[]>;
  /** Appends as part of the turn, and everything that is sent from then on knows of it. */
  append(drafts: readonly RecordDraft[], options?: StepAppendOptions): Promise<void>;
}

/** Options of `append` of a step's context. */
interface StepAppendOptions {
  /** Fields of the entry to set in the same commit. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** The oldest seq a context still needs. */
  readonly windowFromSeq?: number;
}

/** Work that a turn does beside asking the model. Steps run in the order they are given. */
export interface TurnStep {
  /** For events: `compaction`, `memory-flush`, … */
  readonly name: string;
  /**
   * `before-call`: before each call; one that throws fails the turn. `after-turn`: in the background, after the turn was
   * closed; `append` then takes side records only, and one that throws is an event.
   */
  readonly when: "before-call" | "after-turn";
  /** Does the work. A turn waits for it where `when` is `before-call`. */
  run(context: StepContext): Promise<void>;
}

/** What a compaction gets beside the context if a request does not fit. */
interface OverflowContext extends StepContext {
  /** What does not fit: the prompt, the prompt with the output, bytes, or one item. */
  readonly reason: OverflowKind;
  /** What system, tools and messages may have; null when no window is known. */
  readonly targetTokens: number | null;
  /** What the provider said the request has; null when it did not. */
  readonly observedTokens: number | null;
  /** The estimate of the request that did not fit. */
  readonly estimate: ContextEstimate;
}

/** Makes the window smaller by appending a compaction as part of the turn. False when there is nothing to compact. */
export type CompactSession = (context: OverflowContext) => Promise<boolean>;

/** A turn is about to be closed. */
export interface BeforeCloseContext {
  /** The session of the turn. */
  readonly ref: SessionRef;
  /** The id of the turn that is about to be closed. */
  readonly turnId: string;
  /** The outcome with which it will be closed. */
  readonly outcome: "done" | "aborted" | "step-limit";
  /** Null when there is none, or none that is whole. */
  readonly reply: AssistantMessage | null;
  /** As it was last seen. */
  readonly entry: SessionEntry;
}

/** What is done when a turn is about to be closed. */
export interface ClosingDecision {
  /** Only for `done`: appended behind the reply, and the model is asked again. @default none: the turn is closed */
  readonly askAgain?: readonly RecordDraft[];
  /** Fields of the entry to set with what ends the turn. @default none */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** Synchronous, and does not throw. */
export type BeforeClose = (closing: BeforeCloseContext) => ClosingDecision;

/** Changes a record before it is stored and before any model sees it. Pure and synchronous. */
export type RedactDraft = (draft: RecordDraft) => RecordDraft;

/** Options of `createSessions`. */
export interface SessionsOptions {
  /** Stays the caller's to close. */
  readonly store: SessionStore;
  /** The model that sessions ask unless a turn names another. */
  readonly model: SessionModel;
  /** The system prompt, or a function that makes it before each call. @default null */
  readonly system?: SystemPrompt;
  /** The tools that the model may call. @default [] */
  readonly tools?: readonly AgentTool[];
  /**
   * Asked before each call of a tool is run. A refusal, anything else than an approval, and an error keep the call from
   * running; the model reads why. Each decision is a record (`throughline.approval`) that the store has acknowledged before
   * the tool runs. @default every call runs
   */
  readonly approveTool?: ApproveTool;
  /**
   * How `approveTool` is asked about the parallel calls of a reply: about one after the other, or about all at once. Approved
   * calls run in parallel either way. @default "one-by-one"
   */
  readonly approvals?: "one-by-one" | "parallel";
  /** The agent of keys that name none. @default "main" */
  readonly agentId?: string;
  /** Separates sessions within one store: another namespace sees none of them. @default "" */
  readonly namespace?: string;
  /** Model calls in one turn. @default 50 */
  readonly maxSteps?: number;
  /** Whether the calls of one reply run at the same time. @default true */
  readonly parallelTools?: boolean;
  /** How long a turn may go without a sign of life; renewed at a third of it. @default 30000 */
  readonly leaseMs?: number;
  /** Work around the calls, in order. @default [] */
  readonly steps?: readonly TurnStep[];
  /** What is done when a request does not fit and shortening tool results is not enough. @default the guard's own ways */
  readonly compact?: CompactSession;
  /**
   * What is done about a history that is longer than the model's window when its session is opened. `cut`: requests begin at
   * a later turn, and no model is asked; the session keeps all of it, and a later compaction summarizes it. `compact`: the
   * compaction makes it fit. @default "cut" without `compact`, else "compact"
   */
  readonly restore?: "cut" | "compact";
  /** How tool results are shortened where a request does not fit. @default the guard's own ways */
  readonly results?: ResultSettings;
  /** Asked before a turn that did not fail is closed. @default it is closed */
  readonly beforeClose?: BeforeClose;
  /**
   * Words of a reply that are not streamed until it is certain that they are for the user. Of a reply that is not for the
   * user as a whole, a turn's `text` is empty; its messages hold it. @default none
   */
  readonly holdBack?: HoldBack;
  /** Percentages of the window at which a prompt is announced before it is sent, once a cycle. @default [90] */
  readonly warnAtPercents?: readonly number[];
  /**
   * In which sessions the agent may answer, as `readSendPolicy` of the package `policy` reads it. An entry's own
   * `sendPolicy` decides before it. @default null: everywhere the entry does not say `deny`
   */
  readonly sendPolicy?: SendPolicy | null;
  /**
   * When a session resets by itself, as `readResetPolicy` of the package `policy` reads it. It is checked before each
   * turn with a new message; the earlier session is archived. @default null: never
   */
  readonly reset?: ResetPolicy | null;
  /** An IANA zone, for daily resets. @default the system's */
  readonly timeZone?: string;
  /** Changes each record before it is stored and before a model sees it. @default records are stored as they are */
  readonly redactBeforeAppend?: RedactDraft;
  /** Called with the events of all sessions. What it throws is ignored. @default none */
  readonly onEvent?: SessionEventListener;
  /** The time that records, leases and policies use. @default the system's clock */
  readonly clock?: Clock;
  /** Source of session, turn and record ids. @default the system's */
  readonly random?: RandomSource;
  /** Counts tokens, and learns from the provider's usage across the sessions. @default one of its own */
  readonly estimator?: TokenEstimator;
  /**
   * Names this process as the owner of turns and detects which other owners are gone. @default by the operating system
   */
  readonly owners?: TurnOwners;
}
