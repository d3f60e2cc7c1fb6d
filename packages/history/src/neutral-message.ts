import type { Usage } from "@throughline/core";

/** A piece of a neutral message. Blocks of types this build does not know are carried whole. */
export type NeutralBlock =
  | NeutralText
  | NeutralImage
  | NeutralThinking
  | NeutralToolCall
  | { readonly type: "unknown"; readonly originalType: string; readonly block: Readonly<Record<string, unknown>> };

interface NeutralText {
  readonly type: "text";
  readonly text: string;
  /** What the provider signed it with; absent when nothing was stored. */
  readonly signature?: string;
}

/** Either `data` (base64) with `mimeType`, or `source` as Anthropic writes it. */
export interface NeutralImage {
  readonly type: "image";
  readonly data: string | null;
  readonly mimeType: string | null;
  readonly source: Readonly<Record<string, unknown>> | null;
}

export interface NeutralThinking {
  readonly type: "thinking";
  readonly thinking: string;
  /** What the provider signed it with, or the opaque data of a redacted block; null when nothing was stored. */
  readonly signature: string | null;
  readonly redacted: boolean;
}

export interface NeutralToolCall {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** What the provider signed it with; absent when nothing was stored. */
  readonly signature?: string;
}

/** Where a message comes from, so that each later change to it can be reported by its record. */
interface Provenance {
  readonly recordId: string;
  readonly seq: number;
  /** The writer's claim; null when the record states no time. */
  readonly tsMs: number | null;
  readonly content: readonly NeutralBlock[];
  /**
   * True when what stood before this message changed after it was written (compaction, edit, redaction): a provider
   * that binds thinking signatures to the conversation would refuse them.
   */
  readonly isPrefixChanged: boolean;
}

interface NeutralUser extends Provenance {
  readonly role: "user";
}

/** Instructions inside the conversation. */
interface NeutralSystem extends Provenance {
  readonly role: "system";
}

export interface NeutralAssistant extends Provenance {
  readonly role: "assistant";
  readonly api: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  /** `stop`, `length`, `toolUse`, `error`, `aborted`, a newer one, or null when the writer stored none. */
  readonly stopReason: string | null;
  readonly errorMessage: string | null;
  /** The provider's id of the reply; several records may be parts of one. */
  readonly responseId: string | null;
  readonly usage: Usage | null;
  /** True when the record holds a call that its writer stored apart from the reply it belongs to. */
  readonly isFragment: boolean;
  /**
   * True when the reply was aborted and the next record on its branch is a user message with `source: "continue"`: its text
   * is sent. Absent otherwise.
   */
  readonly isContinued?: true;
}

export interface NeutralToolResult extends Provenance {
  readonly role: "toolResult";
  readonly toolCallId: string;
  readonly toolName: string | null;
  readonly isError: boolean;
}

/** A command the user ran; `content` is the text a model is shown. */
interface NeutralBashExecution extends Provenance {
  readonly role: "bashExecution";
  readonly command: string;
  readonly output: string;
  readonly exitCode: number | null;
  readonly cancelled: boolean;
  readonly truncated: boolean;
  readonly fullOutputPath: string | null;
}

interface NeutralCustom extends Provenance {
  readonly role: "custom";
  readonly customType: string | null;
}

/** A summary that a provider made, as a block that only its own API reads and that must go back as it came. */
export interface SignedSummary {
  /** The format the block is in, as records name it: `anthropic-messages`. */
  readonly api: string;
  readonly block: Readonly<Record<string, unknown>>;
}

/** `content` is the bare summary; each rendering puts its own words around it. */
export interface NeutralCompactionSummary extends Provenance {
  readonly role: "compactionSummary";
  readonly tokensBefore: number;
  /** The provider's own form of it; null when there is none, or the summary was changed since. */
  readonly signed: SignedSummary | null;
}

interface NeutralBranchSummary extends Provenance {
  readonly role: "branchSummary";
  readonly fromId: string;
}

/** Stands where a message was redacted. */
interface NeutralRedacted extends Provenance {
  readonly role: "redacted";
  readonly originalType: string;
}

/** A role this build does not know: counted and shown, never sent to a model. */
interface NeutralOther extends Provenance {
  readonly role: "other";
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
