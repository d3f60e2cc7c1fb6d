import type { Usage } from "@throughline/core";

/** A piece of a neutral message. Blocks of types this build does not know are carried whole. */
export type NeutralBlock =
  | NeutralText
  | NeutralImage
  | NeutralThinking
  | NeutralToolCall
  /** A block of a type that this version does not know. */
  | {
      readonly type: "unknown";
      /** The type that its writer gave it. */
      readonly originalType: string;
      /** The block as it was stored. */
      readonly block: Readonly<Record<string, unknown>>;
    };

/** A block of text. */
interface NeutralText {
  readonly type: "text";
  /** The text. */
  readonly text: string;
  /** What the provider signed it with; absent when nothing was stored. */
  readonly signature?: string;
}

/** Either `data` (base64) with `mimeType`, or `source` as Anthropic writes it. */
export interface NeutralImage {
  readonly type: "image";
  /** The bytes as base64; null where `source` holds them. */
  readonly data: string | null;
  /** The media type, such as `image/png`; null where `source` states it. */
  readonly mimeType: string | null;
  /** The image in Anthropic's shape; null where `data` holds it. */
  readonly source: Readonly<Record<string, unknown>> | null;
}

/** A block of a model's thinking. */
export interface NeutralThinking {
  readonly type: "thinking";
  /** The text of the thinking; empty where it is redacted. */
  readonly thinking: string;
  /** What the provider signed it with, or the opaque data of a redacted block; null when nothing was stored. */
  readonly signature: string | null;
  /** True when the provider encrypted it. */
  readonly redacted: boolean;
}

/** A tool call of a model. */
export interface NeutralToolCall {
  readonly type: "toolCall";
  /** The id of the call, which its result names. */
  readonly id: string;
  /** The name of the tool, as the model wrote it. */
  readonly name: string;
  /** The arguments that the model wrote. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The arguments as the model wrote them, when they are no JSON object and `arguments` is `{}`; absent otherwise. */
  readonly partialJson?: string;
  /** What the provider signed it with; absent when nothing was stored. */
  readonly signature?: string;
}

/** Where a message comes from, so that each later change to it can be reported by its record. */
interface Provenance {
  /** The id of the message's record. */
  readonly recordId: string;
  /** The seq of that record. */
  readonly seq: number;
  /** The writer's claim; null when the record states no time. */
  readonly tsMs: number | null;
  /** The blocks of the message. */
  readonly content: readonly NeutralBlock[];
  /**
   * True when what stood before this message changed after it was written (compaction, edit, redaction): a provider
   * that binds thinking signatures to the conversation would refuse them.
   */
  readonly isPrefixChanged: boolean;
}

/** A message of the user. */
interface NeutralUser extends Provenance {
  readonly role: "user";
}

/** Instructions inside the conversation. */
interface NeutralSystem extends Provenance {
  readonly role: "system";
}

/** A reply of a model. */
export interface NeutralAssistant extends Provenance {
  readonly role: "assistant";
  /** The wire shape that the reply arrived in; null when the writer stored none. */
  readonly api: string | null;
  /** The provider that answered; null when the writer stored none. */
  readonly provider: string | null;
  /** The provider's id of the model; null when the writer stored none. */
  readonly model: string | null;
  /** `stop`, `length`, `toolUse`, `error`, `aborted`, a newer one, or null when the writer stored none. */
  readonly stopReason: string | null;
  /** The provider's error; null when the reply did not fail. */
  readonly errorMessage: string | null;
  /** The provider's id of the reply; several records may be parts of one. */
  readonly responseId: string | null;
  /** The tokens of the call; null when the writer stored none. */
  readonly usage: Usage | null;
  /** True when the record holds a call that its writer stored apart from the reply it belongs to. */
  readonly isFragment: boolean;
  /**
   * True when the reply was aborted and the next record on its branch is a user message with `source: "continue"`: its text
   * is sent. Absent otherwise.
   */
  readonly isContinued?: true;
}

/** The result of a tool call. */
export interface NeutralToolResult extends Provenance {
  readonly role: "toolResult";
  /** The id of the call that it answers. */
  readonly toolCallId: string;
  /** The name of the tool; null when the writer stored none. */
  readonly toolName: string | null;
  /** True when the call failed. */
  readonly isError: boolean;
}

/** A command the user ran; `content` is the text a model is shown. */
interface NeutralBashExecution extends Provenance {
  readonly role: "bashExecution";
  /** The command line. */
  readonly command: string;
  /** What the command printed, perhaps shortened. */
  readonly output: string;
  /** The exit code; null when the command did not end by itself. */
  readonly exitCode: number | null;
  /** True when a person ended the command. */
  readonly cancelled: boolean;
  /** True when `output` is shorter than what was printed. */
  readonly truncated: boolean;
  /** The file that has the whole output; null when there is no such file. */
  readonly fullOutputPath: string | null;
}

/** A message that an extension put into the conversation. */
interface NeutralCustom extends Provenance {
  readonly role: "custom";
  /** The extension's name of its kind; null when it states none. */
  readonly customType: string | null;
}

/** A summary that a provider made, as a block that only its own API reads and that must go back as it came. */
export interface SignedSummary {
  /** The format the block is in, as records name it: `anthropic-messages`. */
  readonly api: string;
  /** The block as the provider gave it. */
  readonly block: Readonly<Record<string, unknown>>;
}

/** `content` is the bare summary; each rendering puts its own words around it. */
export interface NeutralCompactionSummary extends Provenance {
  readonly role: "compactionSummary";
  /** Tokens of the context before the compaction. */
  readonly tokensBefore: number;
  /** The provider's own form of it; null when there is none, or the summary was changed since. */
  readonly signed: SignedSummary | null;
}

/** A summary of another branch. */
interface NeutralBranchSummary extends Provenance {
  readonly role: "branchSummary";
  /** The last record of the branch that is summarized. */
  readonly fromId: string;
}

/** Stands where a message was redacted. */
interface NeutralRedacted extends Provenance {
  readonly role: "redacted";
  /** The type of the record before it was redacted. */
  readonly originalType: string;
}

/** A role this build does not know: counted and shown, never sent to a model. */
interface NeutralOther extends Provenance {
  readonly role: "other";
  /** The role that its writer gave it. */
  readonly originalRole: string;
}

/** A message of a context before any provider's rules are applied, in the roles pi and OpenClaw use. */
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
