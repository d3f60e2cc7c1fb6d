import type { Usage } from "@throughline/core";

/** Holds one block of a neutral message. Blocks of unknown types are carried unchanged. */
export type NeutralBlock =
  | NeutralText
  | NeutralImage
  | NeutralThinking
  | NeutralToolCall
  /** Holds a block of a type that this version does not know. */
  | {
      readonly type: "unknown";
      /** States the type that its writer gave it. */
      readonly originalType: string;
      /** Holds the stored block. */
      readonly block: Readonly<Record<string, unknown>>;
    };

/** Holds a block of text. */
interface NeutralText {
  readonly type: "text";
  /** Holds the text. */
  readonly text: string;
  /** Holds the provider's signature of the text; absent if none was stored. */
  readonly signature?: string;
}

/** Holds an image, either as `data` (base64) with `mimeType`, or as `source` in Anthropic's format. */
export interface NeutralImage {
  readonly type: "image";
  /** Holds the bytes as base64; null if `source` holds them. */
  readonly data: string | null;
  /** States the media type, such as `image/png`; null if `source` states it. */
  readonly mimeType: string | null;
  /** Holds the image in Anthropic's format; null if `data` holds it. */
  readonly source: Readonly<Record<string, unknown>> | null;
}

/** Holds a block of a model's thinking. */
export interface NeutralThinking {
  readonly type: "thinking";
  /** Holds the text of the thinking; empty when the block is redacted. */
  readonly thinking: string;
  /** Holds the provider's signature, or the opaque data of a redacted block; null if none was stored. */
  readonly signature: string | null;
  /** Is true when the provider encrypted the thinking. */
  readonly redacted: boolean;
}

/** Holds a tool call of a model. */
export interface NeutralToolCall {
  readonly type: "toolCall";
  /** States the id of the call, to which its result refers. */
  readonly id: string;
  /** States the name of the tool, exactly as the model wrote it. */
  readonly name: string;
  /** Holds the arguments that the model wrote. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Holds the model's raw arguments if they are not a JSON object. `arguments` is then `{}`. Absent otherwise. */
  readonly partialJson?: string;
  /** Holds the provider's signature of the call; absent if none was stored. */
  readonly signature?: string;
}

/** Identifies the record of a message, so that every later change to the message can be reported by its record. */
interface Provenance {
  /** States the id of the message's record. */
  readonly recordId: string;
  /** States the seq of that record. */
  readonly seq: number;
  /** States the writer's time in milliseconds since 1970; null if the record states none. */
  readonly tsMs: number | null;
  /** Holds the blocks of the message. */
  readonly content: readonly NeutralBlock[];
  /**
   * Is true when the messages before this one changed after it was written, by a compaction, an edit or a redaction. A
   * provider that binds thinking signatures to the conversation would reject them.
   */
  readonly isPrefixChanged: boolean;
}

/** Holds a message of the user. */
interface NeutralUser extends Provenance {
  readonly role: "user";
}

/** Holds instructions inside the conversation. */
interface NeutralSystem extends Provenance {
  readonly role: "system";
}

/** Holds a reply of a model. */
export interface NeutralAssistant extends Provenance {
  readonly role: "assistant";
  /** Names the wire format in which the reply arrived; null if none was stored. */
  readonly api: string | null;
  /** Names the provider that answered; null if none was stored. */
  readonly provider: string | null;
  /** States the provider's id of the model; null if none was stored. */
  readonly model: string | null;
  /** States `stop`, `length`, `toolUse`, `error`, `aborted` or a newer reason; null if none was stored. */
  readonly stopReason: string | null;
  /** Holds the provider's error; null if the reply did not fail. */
  readonly errorMessage: string | null;
  /** States the provider's id of the reply. Several records may be parts of one reply. Null if none was stored. */
  readonly responseId: string | null;
  /** Holds the token usage of the call; null if none was stored. */
  readonly usage: Usage | null;
  /** Is true when the record holds a call that its writer stored apart from its reply. */
  readonly isFragment: boolean;
  /**
   * Is true when the reply was aborted and the next record on its branch is a user message with `source: "continue"`.
   * The text of the reply is then sent. Absent otherwise.
   */
  readonly isContinued?: true;
  /** Is true while a call of the reply waits for a decision. The reply is then not sent. Absent otherwise. */
  readonly isWaiting?: true;
}

/** Holds the result of a tool call. */
export interface NeutralToolResult extends Provenance {
  readonly role: "toolResult";
  /** States the id of the call that it answers. */
  readonly toolCallId: string;
  /** Names the tool; null if no name was stored. */
  readonly toolName: string | null;
  /** Is true when the call failed. */
  readonly isError: boolean;
}

/** Holds a command that the user ran. `content` is the text that a model receives. */
interface NeutralBashExecution extends Provenance {
  readonly role: "bashExecution";
  /** Holds the command line. */
  readonly command: string;
  /** Holds the output of the command, which may be shortened. */
  readonly output: string;
  /** Holds the exit code; null if the command did not end by itself. */
  readonly exitCode: number | null;
  /** Is true when a person ended the command. */
  readonly cancelled: boolean;
  /** Is true when `output` is shorter than the real output. */
  readonly truncated: boolean;
  /** Names the file with the whole output; null if no such file exists. */
  readonly fullOutputPath: string | null;
}

/** Holds a message that an extension inserted into the conversation. */
interface NeutralCustom extends Provenance {
  readonly role: "custom";
  /** States the extension's name for its kind of message; null if none was stored. */
  readonly customType: string | null;
}

/**
 * Holds a summary that a provider made. Only the provider's own API can read the block, and it must be sent back
 * unchanged.
 */
export interface SignedSummary {
  /** Names the format of the block as in records, such as `anthropic-messages`. */
  readonly api: string;
  /** Holds the block exactly as the provider sent it. */
  readonly block: Readonly<Record<string, unknown>>;
}

/** Holds the bare summary in `content`. Each rendering wraps it in its own words. */
export interface NeutralCompactionSummary extends Provenance {
  readonly role: "compactionSummary";
  /** Counts the tokens of the context before the compaction. */
  readonly tokensBefore: number;
  /** Holds the provider's own form of the summary; null if there is none, or if the summary was changed since. */
  readonly signed: SignedSummary | null;
}

/** Holds a summary of another branch. */
interface NeutralBranchSummary extends Provenance {
  readonly role: "branchSummary";
  /** States the last record of the summarized branch. */
  readonly fromId: string;
}

/** Marks the position of a redacted message. */
interface NeutralRedacted extends Provenance {
  readonly role: "redacted";
  /** States the type of the record before the redaction. */
  readonly originalType: string;
}

/** Holds a message of an unknown role. It is counted and displayed, but never sent to a model. */
interface NeutralOther extends Provenance {
  readonly role: "other";
  /** States the role that its writer gave it. */
  readonly originalRole: string;
}

/** Holds a message of a context before any provider's rules apply. It uses the roles of pi and OpenClaw. */
export type NeutralMessage =
  | NeutralUser
  | NeutralSystem
  | NeutralAssistant
  | NeutralToolResult
  | NeutralBashExecution
  | NeutralCustom
  | NeutralCompactionSummary
  | NeutralBranchSummary
  | NeutralRedacted
  | NeutralOther;
