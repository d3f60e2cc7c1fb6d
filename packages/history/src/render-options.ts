import { assertKnownOptions, type OptionKind, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { TrailingAssistant } from "./replay-rules.ts";

const { text, object, orNull, oneOf } = optionKinds;

/** What every target takes. */
export interface RenderOptions {
  /** The system prompt to send along. @default null */
  readonly system?: string | null;
  /** The model that gets the messages; signed thinking of other models is left out. @default the context's model */
  readonly target?: {
    /** The provider that gets the messages. */
    readonly provider: string;
    /** The provider's id of the model. */
    readonly modelId: string;
  } | null;
  /** First line of the message that carries a summary. @default "[Previous conversation summary]" */
  readonly summaryPrefix?: string;
  /** What becomes of a result whose call is not in the history. @default "drop" */
  readonly orphanResults?: "drop" | "text";
  /**
   * How to handle an assistant message at the end. It stays, for the model to continue or for a prompt to follow; it is
   * removed; or a short user message follows it.
   * @default "continue" where the provider or some of its models refuse such an end, else "keep"
   */
  readonly trailingAssistant?: TrailingAssistant;
  /**
   * How system messages inside the conversation are sent: as such, or as user text in tags.
   * @default "inline" where every model takes them
   */
  readonly systemMessages?: "inline" | "user";
  /** Whether images and files go along or are replaced by a line that says so. @default "carry" */
  readonly media?: "carry" | "marker";
  /** Further block types the provider takes as they were stored, such as those that need a beta header. @default none */
  readonly carryBlocks?: ReadonlySet<string>;
}

/** With whatever else its holder keeps beside the two. */
const modelKind: OptionKind = {
  expected: "an object with the texts `provider` and `modelId`",
  accepts: (value) => {
    if (!object.accepts(value)) return false;
    const { provider, modelId } = value as { readonly provider?: unknown; readonly modelId?: unknown };
    return typeof provider === "string" && typeof modelId === "string";
  },
};

/** The kinds of the options that every target takes. */
export const renderTable: OptionTable<RenderOptions> = {
  system: orNull(text),
  target: orNull(modelKind),
  summaryPrefix: text,
  orphanResults: oneOf(["drop", "text"]),
  trailingAssistant: oneOf(["keep", "remove", "continue"]),
  systemMessages: oneOf(["inline", "user"]),
  media: oneOf(["carry", "marker"]),
  carryBlocks: { expected: "a Set of texts", accepts: (value) => value instanceof Set },
};

/** @throws {ThroughlineError} INPUT_INVALID */
export function assertRenderOptions(call: string, options: unknown): void {
  assertKnownOptions<RenderOptions>(call, options, renderTable);
}
