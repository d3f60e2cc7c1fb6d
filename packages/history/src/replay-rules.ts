import type { NameLimit } from "@throughline/core/internal";
import type { NeutralThinking } from "./neutral-message.ts";

/** Holds the differences between providers in replaying a history. These rules and a mapping define a new target. */
export interface ProviderRules {
  /**
   * Lists the names of the provider's formats in records. The provider cannot read content that was signed under
   * another format.
   */
  readonly apis: ReadonlySet<string>;
  /** Limits the ids of calls. */
  readonly callIds: IdRule;
  /** Limits the names of tools. */
  readonly toolNames: IdRule;
  /** Lists the media types of images that the provider accepts as base64. */
  readonly imageTypes: ReadonlySet<string>;
  /** Lists the media types of files that the provider accepts as base64. */
  readonly fileTypes: ReadonlySet<string>;
  /** Limits the base64 characters of one image; null means no limit. */
  readonly maxImageLength: number | null;
  /** Limits the bytes of one file. */
  readonly maxFileBytes: number;
  /** Limits the bytes of a request. */
  readonly maxRequestBytes: number;
  /** States whether an image may be a link that the provider follows. */
  readonly imageLinks: boolean;
  /** States whether a file may be a link that the provider follows. */
  readonly fileLinks: boolean;
  /** States whether results must follow the order of their calls, because the format has nothing else to match them. */
  readonly resultsInCallOrder: boolean;
  /**
   * States whether a tool result may hold images: always, except in errors, or never. Otherwise the images follow the
   * results.
   */
  readonly resultImages: "inside" | "inside-unless-error" | "after";
  /** States whether consecutive user messages are merged. */
  readonly mergesUsers: boolean;
  /** States whether consecutive replies are merged. */
  readonly mergesReplies: boolean;
  /** States whether the list must begin with a user message. */
  readonly beginsWithUser: boolean;
  /** States whether a user message after tool results needs a reply in between. */
  readonly repliesAfterResults: boolean;
  /** States whether a tool result may be empty: always, except in errors, or never. */
  readonly emptyResults: "allowed" | "not-in-errors" | "never";
  /** Sets how a system message inside the list is sent by default. */
  readonly systemMessages: "inline" | "user";
  /** Sets how an assistant message at the end is handled by default. */
  readonly trailingAssistant: (modelId: string | null) => TrailingAssistant;
  /** Returns how a reply's thinking is sent in this format, or null when it cannot be sent. */
  readonly carryThinking: (thinking: NeutralThinking) => { readonly itemId: string | null } | null;
  /** States whether thinking is bound to the preceding messages. It is then dropped after these change. */
  readonly bindsThinking: boolean;
  /** States whether texts and calls have their own signatures. */
  readonly signsParts: boolean;
  /** Returns the substitute for a lost signature of a call; null when calls need no signature. */
  readonly callSignature: (modelId: string | null) => string | null;
  /**
   * Lists additional block types that are sent in their stored form. In a reply this requires that the same provider
   * wrote the block.
   */
  readonly carriedBlocks: CarriedBlocks;
  /**
   * Checks whether such a block in a reply has the fields that its provider requires. Without this function every block
   * passes.
   */
  readonly canCarry?: (block: Readonly<Record<string, unknown>>) => boolean;
}

/** Lists block types that are sent unchanged, by position. */
export interface CarriedBlocks {
  /** Lists the block types in a message of the user. */
  readonly user: ReadonlySet<string>;
  /** Lists the block types in a tool result. */
  readonly result: ReadonlySet<string>;
  /** Lists the block types in a reply. */
  readonly reply: ReadonlySet<string>;
}

/** Applies to a provider that accepts only the common blocks. */
export const carriesNothing: CarriedBlocks = { user: new Set(), result: new Set(), reply: new Set() };

/** Holds the rules of most providers. Each provider overrides the rules that differ. */
export const usualRules: Omit<ProviderRules, "apis" | "callIds" | "toolNames" | "carryThinking"> = {
  imageTypes: new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]),
  fileTypes: new Set(["application/pdf"]),
  maxImageLength: null,
  maxFileBytes: Infinity,
  maxRequestBytes: Infinity,
  imageLinks: false,
  fileLinks: false,
  resultsInCallOrder: false,
  resultImages: "after",
  mergesUsers: false,
  mergesReplies: false,
  beginsWithUser: false,
  repliesAfterResults: false,
  emptyResults: "allowed",
  systemMessages: "inline",
  trailingAssistant: () => "keep",
  bindsThinking: false,
  signsParts: false,
  callSignature: () => null,
  carriedBlocks: carriesNothing,
};

/**
 * Names the handling of an assistant message at the end: it stays, it is removed, or a short user message follows it.
 */
export type TrailingAssistant = "keep" | "remove" | "continue";

export interface ReplayRules extends Omit<ProviderRules, "trailingAssistant" | "callSignature"> {
  /**
   * Names the model that receives the messages. Signed thinking of any other model is dropped; null drops all signed
   * thinking.
   */
  readonly target: { readonly provider: string; readonly modelId: string } | null;
  readonly summaryPrefix: string;
  readonly orphanResults: "drop" | "text";
  readonly trailingAssistant: TrailingAssistant;
  readonly callSignature: string | null;
  /** Returns the bytes of a stored file, null without the file, or undefined when it was not read; null for no files. */
  readonly files: ((fileId: string) => Uint8Array | null | undefined) | null;
  /** Counts the base64 characters of the stored files that are sent so far. */
  readonly room: { taken: number };
}

/** Limits an id or a name, and states how invalid values are converted. */
export interface IdRule extends Omit<NameLimit, "allowed"> {
  /** Requires exactly the maximum length, with letters and digits only. @default false */
  readonly isExact?: boolean;
  /** Marks the end of the id; the text after it belongs to the writer and is not part of the id. @default nothing */
  readonly separator?: string;
}

/**
 * These texts replace content that the log does not hold. Models read them, so they must be short and true in every
 * case.
 */
export const madeUpTexts = {
  acknowledgement: "Understood, I have the context.",
  bootstrap: "(The conversation goes on from here.)",
  continuation: "Continue.",
  resultMayHaveRun:
    "No result was recorded for this call. The tool may or may not have run: check its effects before calling it again.",
  resultNotRun: "This call was cut off before it was complete: the tool has not run.",
  emptyErrorResult: "(The tool failed without a message.)",
  emptyResult: "(The tool gave no output.)",
  orphanResult: "[Result of a tool call that is no longer in the history]",
  lateResult: "[Result that came in after the conversation had gone on without it]",
  replyAfterResults: "I have the results.",
} as const;
