import type { NameLimit } from "@throughline/core/internal";
import type { NeutralThinking } from "./neutral-message.ts";

/** What differs from provider to provider when a history is replayed. One of these and a mapping make a new target. */
export interface ProviderRules {
  /** Names of the provider's formats as records have them: what was signed under another one is not understood. */
  readonly apis: ReadonlySet<string>;
  /** What the provider takes as the id of a call. */
  readonly callIds: IdRule;
  /** What the provider takes as the name of a tool. */
  readonly toolNames: IdRule;
  /** Media types of images and files the provider takes as base64. */
  readonly imageTypes: ReadonlySet<string>;
  /** Media types of files that the provider takes as base64. */
  readonly fileTypes: ReadonlySet<string>;
  /** The most characters of base64 in one image; null for no limit of its own. */
  readonly maxImageLength: number | null;
  /** Whether an image, or a file, may be a link that the provider follows. */
  readonly imageLinks: boolean;
  /** Whether a file may be a link that the provider follows. */
  readonly fileLinks: boolean;
  /** Whether results stand in the order of their calls, because nothing else distinguishes them. */
  readonly resultsInCallOrder: boolean;
  /** Whether a tool result may hold images: always, not in an error, or never; elsewhere they follow the results. */
  readonly resultImages: "inside" | "inside-unless-error" | "after";
  /** Whether messages of one role in a row become one. */
  readonly mergesUsers: boolean;
  /** Whether replies in a row become one. */
  readonly mergesReplies: boolean;
  /** Whether the list must begin with a user message. */
  readonly beginsWithUser: boolean;
  /** Whether a user message after tool results needs a reply between. */
  readonly repliesAfterResults: boolean;
  /** Whether a tool result, and an error result, must have words. */
  readonly emptyResults: "allowed" | "not-in-errors" | "never";
  /** How a system message inside the list is sent where nothing else is asked for. */
  readonly systemMessages: "inline" | "user";
  /** What becomes of an assistant message at the end where nothing else is asked for. */
  readonly trailingAssistant: (modelId: string | null) => TrailingAssistant;
  /** Whether a reply's thinking can be sent in this form; null when it cannot. */
  readonly carryThinking: (thinking: NeutralThinking) => { readonly itemId: string | null } | null;
  /** Whether thinking is tied to what stood before it, and goes when that changed. */
  readonly bindsThinking: boolean;
  /** Whether texts and calls carry signatures of their own. */
  readonly signsParts: boolean;
  /** What a call is signed with when its own signature is gone; null when calls go unsigned. */
  readonly callSignature: (modelId: string | null) => string | null;
  /** Block types beyond the common ones that are sent as they were stored, in a reply if the same provider wrote it. */
  readonly carriedBlocks: CarriedBlocks;
  /** Whether a block of such a type in a reply has what its provider asks of it. Absent: every one has. */
  readonly canCarry?: (block: Readonly<Record<string, unknown>>) => boolean;
}

/** Block types that go as they are, by where they stand. */
export interface CarriedBlocks {
  /** Block types in a message of the user. */
  readonly user: ReadonlySet<string>;
  /** Block types in a tool result. */
  readonly result: ReadonlySet<string>;
  /** Block types in a reply. */
  readonly reply: ReadonlySet<string>;
}

/** Of a provider that takes the common blocks only. */
export const carriesNothing: CarriedBlocks = { user: new Set(), result: new Set(), reply: new Set() };

/** What holds for most providers; each states what is otherwise. */
export const usualRules: Omit<ProviderRules, "apis" | "callIds" | "toolNames" | "carryThinking"> = {
  imageTypes: new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]),
  fileTypes: new Set(["application/pdf"]),
  maxImageLength: null,
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

/** What becomes of an assistant message at the end: it stays, it is removed, or a short user message follows it. */
export type TrailingAssistant = "keep" | "remove" | "continue";

/** A provider's rules and what the caller asks for. */
export interface ReplayRules extends Omit<ProviderRules, "trailingAssistant" | "callSignature"> {
  /** The model that gets the messages: signed thinking of any other model is left out. null leaves all of it out. */
  readonly target: { readonly provider: string; readonly modelId: string } | null;
  /** First line of the message that carries a summary. */
  readonly summaryPrefix: string;
  /** What becomes of a result without its call. */
  readonly orphanResults: "drop" | "text";
  readonly trailingAssistant: TrailingAssistant;
  readonly callSignature: string | null;
}

/** What a provider takes as an id or a name, and how others are made to fit. */
export interface IdRule extends Omit<NameLimit, "allowed"> {
  /** Every id has exactly the maximal length, and letters and digits only. @default false */
  readonly isExact?: boolean;
  /** What stands after it is the writer's own and not part of the id. @default nothing */
  readonly separator?: string;
}

/** Said in place of what the log does not hold. Sent to models, so: short, and true whatever happened. */
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
