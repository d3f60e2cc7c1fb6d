/**
 * The record format is pi's and OpenClaw's session entry, version 3, as a superset. `docs/formats/records.md` is
 * the normative description; these types follow it. Every type is open: unknown fields and unknown types are kept.
 */
export interface SessionRecord {
  /** The record's type, such as `message`. Unknown types are kept. */
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
  /** The text, in Markdown where a model wrote it. */
  readonly text: string;
  /** The provider's signature of the text, which is sent back unchanged. */
  readonly textSignature?: string;
}

/** `data` is base64. Some writers use Anthropic's `source` instead; both shapes are read. */
export interface ImageBlock {
  readonly type: "image";
  /** The bytes as base64. */
  readonly data?: string;
  /** The media type, such as `image/png`. */
  readonly mimeType?: string;
  /** Anthropic's shape: `type`, and `media_type` with `data`, or `url`. */
  readonly source?: Readonly<Record<string, unknown>>;
}

/** A block of a model's thinking, with the provider's signature. */
export interface ThinkingBlock {
  readonly type: "thinking";
  /** The text of the thinking; empty where the provider shows none. */
  readonly thinking: string;
  /** The provider's signature, which is sent back unchanged. */
  readonly thinkingSignature?: string;
  /** True when the provider encrypted the thinking; the signature then holds it. */
  readonly redacted?: boolean;
}

/** A tool call of a model. */
export interface ToolCallBlock {
  readonly type: "toolCall";
  /** The id of the call, which its result names. */
  readonly id: string;
  /** The name of the tool, as the model wrote it. */
  readonly name: string;
  /** The arguments that the model wrote. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /**
   * What the model wrote for arguments when that is no JSON object, or was broken off; `arguments` is empty then. Such a
   * call is never run: it is answered by an error.
   */
  readonly partialJson?: string;
  /** Gemini's signature of the call, which is sent back unchanged. */
  readonly thoughtSignature?: string;
}

/** A block of a type this version does not know. Carried, never dropped in silence. */
export interface UnknownBlock {
  /** The block's type, as its writer named it. */
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Tokens of one model call. `input` leaves out what the cache served; `reasoning` is part of `output`. */
export interface Usage {
  /** Tokens of the prompt that no cache served. */
  readonly input: number;
  /** Tokens that the model wrote. */
  readonly output: number;
  /** Tokens of the prompt that a cache served. */
  readonly cacheRead: number;
  /** Tokens of the prompt that were written to a cache. */
  readonly cacheWrite: number;
  /** Tokens of thinking. Absent where the provider does not state them. */
  readonly reasoning?: number;
  /** The sum of `input`, `output`, `cacheRead` and `cacheWrite`. */
  readonly totalTokens?: number;
  /** What the call cost, as its writer states it, by kind of token. */
  readonly cost?: Readonly<Record<string, number>>;
}

/** A message of the user. */
export interface UserMessage {
  readonly role: "user";
  /** What the user said: text, or blocks of text and images. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /**
   * Who put it there where nobody typed it: `flush` (a memory flush) or `continue` (it asks for the rest of the reply before
   * it). Other programs may write other words.
   */
  readonly source?: string;
  /** When it was written, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** A reply of a model. */
export interface AssistantMessage {
  readonly role: "assistant";
  /** The reply: text, or blocks of text, thinking and tool calls. */
  readonly content: string | readonly (TextBlock | ThinkingBlock | ToolCallBlock | UnknownBlock)[];
  /** The wire shape that it arrived in, such as `anthropic-messages`. */
  readonly api?: string;
  /** The provider that answered. */
  readonly provider?: string;
  /** The provider's id of the model. */
  readonly model?: string;
  /** The tokens of the call, as the provider reported them. */
  readonly usage?: Usage;
  /** `stop`, `length`, `toolUse`, `error`, `aborted`, or a newer one. */
  readonly stopReason?: string;
  /** The provider's error, where `stopReason` is `error`. */
  readonly errorMessage?: string;
  /** The reply was cut off by a crash. What is here is the text that was shown; `stopReason` is `aborted`. */
  readonly recovered?: boolean;
  /** When it was received, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** The result of a tool call. */
export interface ToolResultMessage {
  readonly role: "toolResult";
  /** The id of the call that it answers. */
  readonly toolCallId: string;
  /** The name of the tool that was called. */
  readonly toolName?: string;
  /** What the model reads: text, or blocks of text and images. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** Kept for people and programs; never sent to a model. */
  readonly details?: unknown;
  /** True when the call failed. */
  readonly isError?: boolean;
  /** When the tool returned, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** A shell command that a person ran, with its output. */
export interface BashExecutionMessage {
  readonly role: "bashExecution";
  /** The command line. */
  readonly command: string;
  /** What the command printed, perhaps shortened. */
  readonly output: string;
  /** The exit code; null or absent when the command did not end by itself. */
  readonly exitCode?: number | null;
  /** True when a person ended the command. */
  readonly cancelled?: boolean;
  /** True when `output` is shorter than what was printed. */
  readonly truncated?: boolean;
  /** The file that has the whole output, on the machine that ran it. */
  readonly fullOutputPath?: string;
  /** True when no model may see the command and its output. */
  readonly excludeFromContext?: boolean;
  /** When it was run, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** A message that an extension of pi put into the conversation. */
export interface CustomRoleMessage {
  /** Always `custom`. */
  readonly role: "custom";
  /** The extension's name of its kind. */
  readonly customType?: string;
  /** What the model reads as text of the user. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** Whether a program shows it to people. */
  readonly display?: boolean;
  /** JSON of the extension, never sent to a model. */
  readonly details?: unknown;
  /** When it was written, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** A message with a role that this version does not know. It is kept, and not sent. */
interface UnknownRoleMessage {
  /** The role, as its writer named it. */
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
  /** A message of the conversation. */
  readonly message: {
    /** The message, by its role. */
    readonly message: Message;
  };
  /** A summary that takes the place of older messages. */
  readonly compaction: {
    /** The text of the summary. */
    readonly summary: string;
    /** The oldest record before this one that stays in the context. */
    readonly firstKeptEntryId: string;
    /** Tokens of the context before the compaction. */
    readonly tokensBefore: number;
    /** Tokens of the context after it. */
    readonly tokensAfter?: number;
    /** Facts about the summary as JSON; section 2 of the record format lists ours. */
    readonly details?: unknown;
    /** True when an extension wrote the summary. */
    readonly fromHook?: boolean;
    /** True when a checkpoint supplied the summary; some writers put its id here. */
    readonly fromCheckpoint?: boolean | string;
    /** The checkpoint record that supplied the summary. */
    readonly checkpointId?: string;
    /** Messages that the summary replaces. */
    readonly messagesRemoved?: number;
  };
  /** A summary of another branch, at the place where this one continues. */
  readonly branch_summary: {
    /** The last record of the branch that is summarized. */
    readonly fromId: string;
    /** The text of the summary, sent as text of the user. */
    readonly summary: string;
    /** Facts about the summary, as JSON. */
    readonly details?: unknown;
  };
  /** Data of an extension, never sent to a model. */
  readonly custom: {
    /** The extension's name of its kind. */
    readonly customType: string;
    /** The data, as JSON. */
    readonly data?: unknown;
  };
  /** A message of an extension, sent as text of the user. */
  readonly custom_message: {
    /** The extension's name of its kind. */
    readonly customType: string;
    /** What the model reads. */
    readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
    /** Whether a program shows it to people. */
    readonly display?: boolean;
    /** JSON of the extension, never sent to a model. */
    readonly details?: unknown;
  };
  /** The model of the branch from here on. */
  readonly model_change: {
    /** The provider of the model. */
    readonly provider: string;
    /** The provider's id of the model. */
    readonly modelId: string;
  };
  /** The thinking level of the branch from here on. */
  readonly thinking_level_change: {
    /** `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. */
    readonly thinkingLevel: string;
  };
  /** A bookmark on another record. */
  readonly label: {
    /** The record that has the label. */
    readonly targetId: string;
    /** The text. Absent: the label is removed. */
    readonly label?: string;
  };
  /** Facts about the session. */
  readonly session_info: {
    /** The session's name. */
    readonly name?: string;
  };
  /** Tokens of a call that no message holds. */
  readonly usage: {
    /** What the call was for. */
    readonly kind: string;
    /** The tokens of the call. */
    readonly usage: Usage;
    /** The provider that was asked. */
    readonly provider?: string;
    /** The provider's id of the model. */
    readonly model?: string;
  };
  /** Changes what another record contributes to a context. */
  readonly context_edit: {
    /** The record whose content is changed. */
    readonly targetId: string;
    /** The content in its place; null leaves the record out. */
    readonly replacement: unknown;
  };
  /** Moves the head to another record. */
  readonly leaf: {
    /** The new head; null stands for before the first record. */
    readonly targetId: string | null;
  };
  /** Begins an empty window. */
  readonly reset: {
    /** Why it was reset, in the words of its writer. */
    readonly reason: string;
    /** The oldest record before it that stays in the context. */
    readonly firstKeptEntryId?: string;
  };
  /** A summary that was made while the session continued. */
  readonly checkpoint: {
    /** The summary with its lists. */
    readonly checkpoint: Checkpoint;
  };
}

/** A summary of a session up to a record, made while the session continues. */
export interface Checkpoint {
  /** The text of the summary. */
  readonly summary: string;
  /** Tokens of the context that it summarizes. */
  readonly tokensAtCheckpoint: number;
  /** Messages of the session when it was made. */
  readonly messageCountAtCheckpoint: number;
  /** What the conversation was about. */
  readonly topics?: readonly string[];
  /** What was decided. */
  readonly keyDecisions?: readonly string[];
  /** What is still open. */
  readonly openQuestions?: readonly string[];
  /** The id of the last record the summary covers. */
  readonly coversToId?: string;
}

/** A record type that this version knows. */
export type KnownRecordType = keyof RecordFields;

/** A record whose type is known and whose own fields are typed. Checked by `findRecordProblem`, not by this type. */
export type RecordOf<Type extends KnownRecordType> = SessionRecord & {
  /** The record type that the fields belong to. */
  readonly type: Type;
} & RecordFields[Type];

/** Narrows by type alone; run `findRecordProblem` first on records of unknown origin. */
export function isRecordOfType<Type extends KnownRecordType>(
  record: SessionRecord,
  type: Type,
): record is RecordOf<Type> {
  return record.type === type;
}
