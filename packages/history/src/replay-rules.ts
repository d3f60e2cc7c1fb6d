/** What differs from provider to provider when a history is replayed. One of these and a rendering make a new target. */
export interface ReplayRules {
  /** The model that gets the messages: signed thinking of any other model is left out. null leaves all of it out. */
  readonly target: { readonly provider: string; readonly modelId: string } | null;
  /** First line of the message that carries a summary. */
  readonly summaryPrefix: string;
  /** What becomes of a result without its call. */
  readonly orphanResults: "drop" | "text";
  /** What becomes of an assistant message at the end. */
  readonly trailingAssistant: "keep" | "remove" | "continue";
  /** Characters a tool call id may have and how many of them. */
  readonly callIds: IdRule;
  readonly toolNames: IdRule;
  /** Media types of images the provider takes. */
  readonly imageTypes: ReadonlySet<string>;
}

export interface IdRule {
  /** Matches one character that is not allowed, with the flag `g`. */
  readonly forbidden: RegExp;
  readonly maxLength: number;
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
  orphanResult: "[Result of a tool call that is no longer in the history]",
} as const;
