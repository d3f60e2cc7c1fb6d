/**
 * Holds a record of a session. The format is pi's and OpenClaw's session entry, version 3, as a superset.
 * `docs/formats/records.md` is the normative description; these types follow it. Every type is open: unknown fields and
 * unknown types are kept.
 */
export interface SessionRecord {
  /** States the record's type, such as `message`. Unknown types are kept. */
  readonly type: string;
  /** States the record's id, which is opaque, unique in the session, and never compared for order. */
  readonly id: string;
  /** States the id of the record that this record follows on its branch; null at the root. */
  readonly parentId: string | null;
  /**
   * States the writer's time as ISO 8601 with milliseconds and Z. `seq` decides the order of records, never the time.
   */
  readonly timestamp: string;
  /**
   * Names the foreign format of the source that the record was read from, such as `claude-code`. See `sourceFormatOf`.
   */
  readonly sourceFormat?: unknown;
  /** Names the record whose source this record was read from too. See `derivedFromOf`. */
  readonly derivedFrom?: unknown;
  readonly [field: string]: unknown;
}

/** Holds a block of text. */
export interface TextBlock {
  readonly type: "text";
  /** Holds the text, in Markdown when a model wrote it. */
  readonly text: string;
  /** Holds the provider's signature of the text, which is sent back unchanged. */
  readonly textSignature?: string;
}

/** Holds an image, with base64 in `data`. Some writers use Anthropic's `source` instead; both shapes are read. */
export interface ImageBlock {
  readonly type: "image";
  /** Holds the bytes as base64. */
  readonly data?: string;
  /** States the media type, such as `image/png`. */
  readonly mimeType?: string;
  /** Holds Anthropic's shape: `type`, and `media_type` with `data`, or `url`. */
  readonly source?: Readonly<Record<string, unknown>>;
}

/** Holds a block of a model's thinking, with the provider's signature. */
export interface ThinkingBlock {
  readonly type: "thinking";
  /** Holds the text of the thinking; empty when the provider shows none. */
  readonly thinking: string;
  /** Holds the provider's signature, which is sent back unchanged. */
  readonly thinkingSignature?: string;
  /** States whether the provider encrypted the thinking, which the signature then holds. */
  readonly redacted?: boolean;
}

/** Holds a tool call of a model. */
export interface ToolCallBlock {
  readonly type: "toolCall";
  /** States the id of the call, which its result names. */
  readonly id: string;
  /** Names the tool as the model wrote it. */
  readonly name: string;
  /** Holds the arguments that the model wrote. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /**
   * Holds the model's text for the arguments when it is no JSON object or was cut off; `arguments` is empty then. Such
   * a call never runs: an error answers it.
   */
  readonly partialJson?: string;
  /** Holds Gemini's signature of the call, which is sent back unchanged. */
  readonly thoughtSignature?: string;
}

/** Holds a block of a type that this version does not know. The block is kept and never dropped silently. */
export interface UnknownBlock {
  /** States the block's type, as its writer named it. */
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * Counts the tokens of one model call. `input` excludes the tokens that the cache served; `reasoning` is part of
 * `output`.
 */
export interface Usage {
  /** Counts the prompt tokens that no cache served. */
  readonly input: number;
  /** Counts the tokens that the model wrote. */
  readonly output: number;
  /** Counts the prompt tokens that a cache served. */
  readonly cacheRead: number;
  /** Counts the prompt tokens that were written to a cache. */
  readonly cacheWrite: number;
  /** Counts the tokens of thinking. Absent when the provider does not state them. */
  readonly reasoning?: number;
  /** States the sum of `input`, `output`, `cacheRead` and `cacheWrite`. */
  readonly totalTokens?: number;
  /** States the cost of the call by kind of token, as its writer states it. */
  readonly cost?: Readonly<Record<string, number>>;
}

/** Holds a message of the user. */
export interface UserMessage {
  readonly role: "user";
  /** Holds the content: text, or blocks of text and images. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /**
   * Names the origin of a message that no person typed: `flush` (a memory flush) or `continue` (a request for the rest
   * of the previous reply). Other programs may write other words.
   */
  readonly source?: string;
  /** States when the message was written, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** Holds a reply of a model. */
export interface AssistantMessage {
  readonly role: "assistant";
  /** Holds the content: text, or blocks of text, thinking and tool calls. */
  readonly content: string | readonly (TextBlock | ThinkingBlock | ToolCallBlock | UnknownBlock)[];
  /** Names the wire shape of the reply, such as `anthropic-messages`. */
  readonly api?: string;
  /** Names the provider that answered. */
  readonly provider?: string;
  /** States the provider's id of the model. */
  readonly model?: string;
  /** Holds the tokens of the call, as the provider reported them. */
  readonly usage?: Usage;
  /** States why the reply ended: `stop`, `length`, `toolUse`, `error`, `aborted`, or a newer word. */
  readonly stopReason?: string;
  /** Holds the provider's error when `stopReason` is `error`. */
  readonly errorMessage?: string;
  /**
   * States whether a crash cut off the reply. The content is then the text that was shown, and `stopReason` is
   * `aborted`.
   */
  readonly recovered?: boolean;
  /** States when the reply was received, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** Holds the result of a tool call. */
export interface ToolResultMessage {
  readonly role: "toolResult";
  /** States the id of the call that the result answers. */
  readonly toolCallId: string;
  /** Names the tool that was called. */
  readonly toolName?: string;
  /** Holds the content that the model reads: text, or blocks of text and images. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** Holds details for people and programs, which are never sent to a model. */
  readonly details?: unknown;
  /** States whether the call failed. */
  readonly isError?: boolean;
  /** States when the tool returned, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** Holds a shell command that a person ran, with its output. */
export interface BashExecutionMessage {
  readonly role: "bashExecution";
  /** States the command line. */
  readonly command: string;
  /** Holds the output of the command, perhaps shortened. */
  readonly output: string;
  /** States the exit code; null or absent when the command did not end by itself. */
  readonly exitCode?: number | null;
  /** States whether a person ended the command. */
  readonly cancelled?: boolean;
  /** States whether `output` is shorter than the printed text. */
  readonly truncated?: boolean;
  /** States the path of the file with the whole output, on the machine that ran the command. */
  readonly fullOutputPath?: string;
  /** States whether the command and its output must be hidden from models. */
  readonly excludeFromContext?: boolean;
  /** States when the command was run, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** Holds a message that an extension of pi added to the conversation. */
export interface CustomRoleMessage {
  readonly role: "custom";
  /** Names the type of the message in the extension's words. */
  readonly customType?: string;
  /** Holds the content that the model reads as text of the user. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** States whether a program shows the message to people. */
  readonly display?: boolean;
  /** Holds JSON of the extension, which is never sent to a model. */
  readonly details?: unknown;
  /** States when the message was written, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** Holds a message with a role that this version does not know. The message is kept, but not sent. */
interface UnknownRoleMessage {
  /** States the role, as its writer named it. */
  readonly role: string;
  readonly [field: string]: unknown;
}

/** Holds a message of a session, of a known role or of any other. */
export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | BashExecutionMessage
  | CustomRoleMessage
  | UnknownRoleMessage;

/** Holds the fields that each known record type adds to `SessionRecord`. */
export interface RecordFields {
  /** Holds a message of the conversation. */
  readonly message: {
    /** Holds the message, typed by its role. */
    readonly message: Message;
  };
  /** Holds a summary that replaces older messages. */
  readonly compaction: {
    /** Holds the text of the summary. */
    readonly summary: string;
    /** States the id of the oldest earlier record that stays in the context. */
    readonly firstKeptEntryId: string;
    /** Counts the tokens of the context before the compaction. */
    readonly tokensBefore: number;
    /** Counts the tokens of the context after the compaction. */
    readonly tokensAfter?: number;
    /**
     * Holds facts about the summary as JSON; section 2 of the record format lists the facts that Throughline writes.
     */
    readonly details?: unknown;
    /** States whether an extension wrote the summary. */
    readonly fromHook?: boolean;
    /** States whether a checkpoint supplied the summary; some writers put its id here. */
    readonly fromCheckpoint?: boolean | string;
    /** States the id of the checkpoint record that supplied the summary. */
    readonly checkpointId?: string;
    /** Counts the messages that the summary replaces. */
    readonly messagesRemoved?: number;
  };
  /** Holds a summary of another branch, at the point where this branch continues. */
  readonly branch_summary: {
    /** States the id of the last record of the summarized branch. */
    readonly fromId: string;
    /** Holds the text of the summary, which is sent as text of the user. */
    readonly summary: string;
    /** Holds facts about the summary as JSON. */
    readonly details?: unknown;
  };
  /** Holds data of an extension, which is never sent to a model. */
  readonly custom: {
    /** Names the type of the data in the extension's words. */
    readonly customType: string;
    /** Holds the data as JSON. */
    readonly data?: unknown;
  };
  /** Holds a message of an extension, which is sent as text of the user. */
  readonly custom_message: {
    /** Names the type of the message in the extension's words. */
    readonly customType: string;
    /** Holds the content that the model reads. */
    readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
    /** States whether a program shows the message to people. */
    readonly display?: boolean;
    /** Holds JSON of the extension, which is never sent to a model. */
    readonly details?: unknown;
  };
  /** Sets the model of the branch from this record on. */
  readonly model_change: {
    /** Names the provider of the model. */
    readonly provider: string;
    /** States the provider's id of the model. */
    readonly modelId: string;
  };
  /** Sets the thinking level of the branch from this record on. */
  readonly thinking_level_change: {
    /** States the level: `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. */
    readonly thinkingLevel: string;
  };
  /** Puts a bookmark on another record. */
  readonly label: {
    /** States the id of the record that has the label. */
    readonly targetId: string;
    /** Holds the text of the label. An absent text removes the label. */
    readonly label?: string;
  };
  /** Holds facts about the session. */
  readonly session_info: {
    /** States the session's name. */
    readonly name?: string;
  };
  /** Holds the tokens of a call that no message holds. */
  readonly usage: {
    /** States the purpose of the call. */
    readonly kind: string;
    /** Holds the tokens of the call. */
    readonly usage: Usage;
    /** Names the provider that was asked. */
    readonly provider?: string;
    /** States the provider's id of the model. */
    readonly model?: string;
  };
  /** Changes what another record contributes to a context. */
  readonly context_edit: {
    /** States the id of the record whose content changes. */
    readonly targetId: string;
    /** Holds the new content; null leaves the record out. */
    readonly replacement: unknown;
  };
  /** Moves the head to another record. */
  readonly leaf: {
    /** States the id of the new head; null stands for the position before the first record. */
    readonly targetId: string | null;
  };
  /** Starts an empty window. */
  readonly reset: {
    /** States the reason for the reset, in the words of its writer. */
    readonly reason: string;
    /** States the id of the oldest earlier record that stays in the context. */
    readonly firstKeptEntryId?: string;
  };
  /** Holds a summary that was written while the session continued. */
  readonly checkpoint: {
    /** Holds the summary with its lists. */
    readonly checkpoint: Checkpoint;
  };
}

/** Holds a summary of a session up to a record, written while the session continues. */
export interface Checkpoint {
  /** Holds the text of the summary. */
  readonly summary: string;
  /** Counts the tokens of the summarized context. */
  readonly tokensAtCheckpoint: number;
  /** Counts the messages of the session when the checkpoint was written. */
  readonly messageCountAtCheckpoint: number;
  /** Lists the topics of the conversation. */
  readonly topics?: readonly string[];
  /** Lists the decisions of the conversation. */
  readonly keyDecisions?: readonly string[];
  /** Lists the questions that are still open. */
  readonly openQuestions?: readonly string[];
  /** States the id of the last record that the summary covers. */
  readonly coversToId?: string;
}

/** Names a record type that this version knows. */
export type KnownRecordType = keyof RecordFields;

/** Holds a record of a known type with typed fields. `findRecordProblem` checks the fields, this type does not. */
export type RecordOf<Type extends KnownRecordType> = SessionRecord & {
  /** States the record type that the fields belong to. */
  readonly type: Type;
} & RecordFields[Type];

/** Narrows a record by its type alone. Run `findRecordProblem` first on records of unknown origin. */
export function isRecordOfType<Type extends KnownRecordType>(
  record: SessionRecord,
  type: Type,
): record is RecordOf<Type> {
  return record.type === type;
}
