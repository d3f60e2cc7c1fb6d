import { assertKnownOptions, type OptionKind, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { TrailingAssistant } from "./replay-rules.ts";

const { callback, text, object, orNull, oneOf } = optionKinds;

/** Holds the options that every target accepts. */
export interface RenderOptions {
  /** Sets the system prompt to send. @default null */
  readonly system?: string | null | undefined;
  /**
   * Names the model that receives the messages. Signed thinking of other models is dropped. @default the context's
   * model
   */
  readonly target?:
    | {
        /** States the provider that receives the messages. */
        readonly provider: string;
        /** States the provider's id of the model. */
        readonly modelId: string;
      }
    | null
    | undefined;
  /** Sets the first line of the message that holds a summary. @default "[Previous conversation summary]" */
  readonly summaryPrefix?: string | undefined;
  /** Drops a result whose call is not in the history, or sends it as text. @default "drop" */
  readonly orphanResults?: "drop" | "text" | undefined;
  /**
   * Decides how to handle an assistant message at the end. `keep` leaves it, for the model to continue or for a prompt
   * to follow. `remove` removes it. `continue` adds a short user message.
   * @default "continue" where the provider or some of its models refuse such an end, else "keep"
   */
  readonly trailingAssistant?: TrailingAssistant | undefined;
  /**
   * Sends system messages inside the conversation either as system messages or as user text in tags.
   * @default "inline" where every model takes them
   */
  readonly systemMessages?: "inline" | "user" | undefined;
  /** Sends images and files, or replaces each by a line that reports the omission. @default "carry" */
  readonly media?: "carry" | "marker" | undefined;
  /**
   * Returns the bytes of a file to which a block `{ type: "file", fileId }` refers. Null means that the file is not
   * there, and undefined that it was not read. It is called again whenever the history is built again.
   * @default a line takes the place of each file
   */
  readonly files?: ((fileId: string) => Uint8Array | null | undefined) | undefined;
  /**
   * Adds block types that the provider accepts in their stored form, such as types behind a beta header. @default none
   */
  readonly carryBlocks?: ReadonlySet<string> | undefined;
}

/** The check allows additional fields, because callers may pass a larger model object. */
const modelKind: OptionKind = {
  expected: "an object with the texts `provider` and `modelId`",
  accepts: (value) => {
    if (!object.accepts(value)) return false;
    const { provider, modelId } = value as { readonly provider?: unknown; readonly modelId?: unknown };
    return typeof provider === "string" && typeof modelId === "string";
  },
};

export const renderTable: OptionTable<RenderOptions> = {
  system: orNull(text),
  target: orNull(modelKind),
  summaryPrefix: text,
  orphanResults: oneOf(["drop", "text"]),
  trailingAssistant: oneOf(["keep", "remove", "continue"]),
  systemMessages: oneOf(["inline", "user"]),
  media: oneOf(["carry", "marker"]),
  files: callback,
  carryBlocks: { expected: "a Set of texts", accepts: (value) => value instanceof Set },
};

/** Checks the options of a rendering. @throws {ThroughlineError} INPUT_INVALID */
export function assertRenderOptions(call: string, options: unknown): void {
  assertKnownOptions<RenderOptions>(call, options, renderTable);
}
