/**
 * The record format is pi's and OpenClaw's session entry, version 3, as a superset. `docs/formats/records.md` is
 * the normative description; these types follow it. Every type is open: unknown fields and unknown types are kept.
 */
export interface SessionRecord {
  readonly type: string;
  /** Opaque and unique in the session. Never compared for order. */
  readonly id: string;
  /** The record this one follows on its branch; null at the root. */
  readonly parentId: string | null;
  /** ISO 8601 with milliseconds and Z: the writer's claim. Order is `seq`, never time. */
  readonly timestamp: string;
  /** The format of the source the record was read from, where that is none of ours: `claude-code`. See `sourceFormatOf`. */
  readonly sourceFormat?: unknown;
  /** The record whose source this one was read from too. See `derivedFromOf`. */
  readonly derivedFrom?: unknown;
  readonly [field: string]: unknown;
}

/** A block of text. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly textSignature?: string;
}

/** `data` is base64. Some writers use Anthropic's `source` instead; both shapes are read. */
export interface ImageBlock {
  readonly type: "image";
  readonly data?: string;
  readonly mimeType?: string;
  readonly source?: Readonly<Record<string, unknown>>;
}

/** A block of a model's thinking, with the provider's signature. */
export interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly thinkingSignature?: string;
  readonly redacted?: boolean;
}

/** A tool call of a model. */
export interface ToolCallBlock {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /**
   * What the model wrote for arguments when that is no JSON object, or was broken off; `arguments` is empty then. Such a
   * call is never run: it is answered by an error.
   */
  readonly partialJson?: string;
  readonly thoughtSignature?: string;
}

/** A block of a type this version does not know. Carried, never dropped in silence. */
export interface UnknownBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Tokens of one model call. `input` leaves out what the cache served; `reasoning` is part of `output`. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning?: number;
  readonly totalTokens?: number;
  readonly cost?: Readonly<Record<string, number>>;
}

/** A message of the user. */
export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /**
   * Who put it there where nobody typed it: `flush` (a memory flush) or `continue` (it asks for the rest of the reply before
   * it). Other programs may write other words.
   */
  readonly source?: string;
  readonly timestamp?: number;
}

/** A reply of a model. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string | readonly (TextBlock | ThinkingBlock | ToolCallBlock | UnknownBlock)[];
  readonly api?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: Usage;
  /** `stop`, `length`, `toolUse`, `error`, `aborted`, or a newer one. */
  readonly stopReason?: string;
  readonly errorMessage?: string;
  /** The reply was cut off by a crash. What is here is the text that was shown; `stopReason` is `aborted`. */
  readonly recovered?: boolean;
  readonly timestamp?: number;
}

/** The result of a tool call. */
export interface ToolResultMessage {
  readonly role: "toolResult";
  readonly toolCallId: string;
  readonly toolName?: string;
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** Kept for people and programs; never sent to a model. */
  readonly details?: unknown;
  readonly isError?: boolean;
  readonly timestamp?: number;
}

/** A shell command that a person ran, with its output. */
export interface BashExecutionMessage {
  readonly role: "bashExecution";
  readonly command: string;
  readonly output: string;
  readonly exitCode?: number | null;
  readonly cancelled?: boolean;
  readonly truncated?: boolean;
  readonly fullOutputPath?: string;
  readonly excludeFromContext?: boolean;
  readonly timestamp?: number;
}

export interface CustomRoleMessage {
  readonly role: "custom";
  readonly customType?: string;
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  readonly display?: boolean;
  readonly details?: unknown;
  readonly timestamp?: number;
}

interface UnknownRoleMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

/** A message of a session, of a known role or of any other. */
export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | BashExecutionMessage
  | CustomRoleMessage
  | UnknownRoleMessage;

/** The fields each known record type adds to `SessionRecord`. */
export interface RecordFields {
  readonly message: { readonly message: Message };
  readonly compaction: {
    readonly summary: string;
    /** The oldest record before this one that stays in the context. */
    readonly firstKeptEntryId: string;
    readonly tokensBefore: number;
    readonly tokensAfter?: number;
    readonly details?: unknown;
    readonly fromHook?: boolean;
    /** True when a checkpoint supplied the summary; some writers put its id here. */
    readonly fromCheckpoint?: boolean | string;
    readonly checkpointId?: string;
    readonly messagesRemoved?: number;
  };
  readonly branch_summary: { readonly fromId: string; readonly summary: string; readonly details?: unknown };
  readonly custom: { readonly customType: string; readonly data?: unknown };
  readonly custom_message: {
    readonly customType: string;
    readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
    readonly display?: boolean;
    readonly details?: unknown;
  };
  readonly model_change: { readonly provider: string; readonly modelId: string };
  readonly thinking_level_change: { readonly thinkingLevel: string };
  readonly label: { readonly targetId: string; readonly label?: string };
  readonly session_info: { readonly name?: string };
  readonly usage: { readonly kind: string; readonly usage: Usage; readonly provider?: string; readonly model?: string };
  readonly context_edit: { readonly targetId: string; readonly replacement: unknown };
  readonly leaf: { readonly targetId: string | null };
  readonly reset: { readonly reason: string; readonly firstKeptEntryId?: string };
  readonly checkpoint: { readonly checkpoint: Checkpoint };
}

/** A summary of a session up to a record, made while the session continues. */
export interface Checkpoint {
  readonly summary: string;
  readonly tokensAtCheckpoint: number;
  readonly messageCountAtCheckpoint: number;
  readonly topics?: readonly string[];
  readonly keyDecisions?: readonly string[];
  readonly openQuestions?: readonly string[];
  /** The id of the last record the summary covers. */
  readonly coversToId?: string;
}

/** A record type that this version knows. */
export type KnownRecordType = keyof RecordFields;

/** A record whose type is known and whose own fields are typed. Checked by `findRecordProblem`, not by this type. */
export type RecordOf<Type extends KnownRecordType> = SessionRecord & { readonly type: Type } & RecordFields[Type];

/** Narrows by type alone; run `findRecordProblem` first on records of unknown origin. */
export function isRecordOfType<Type extends KnownRecordType>(
  record: SessionRecord,
  type: Type,
): record is RecordOf<Type> {
  return record.type === type;
}
