import { assertKnownOptions, optionKinds, type OptionTable, isFields } from "@throughline/core/internal";
import { classifyOverflow } from "./classify-overflow.ts";
import { countInstructions, findCut } from "./find-cut.ts";
import type { CompactMessages, GuardEvent } from "./guard-options.ts";
import { serializeMessages } from "./serialize-messages.ts";
import { shortenText } from "./shorten-text.ts";

/** Describes one question to a summarizer. */
interface InFlightSummaryRequest {
  /** Holds the instructions for the summarizer. */
  readonly system: string;
  /** Holds the question, which includes the conversation. */
  readonly prompt: string;
  /** Limits the tokens of the summary. */
  readonly maxOutputTokens: number;
  /** Ends the call; null when the caller passed no signal. */
  readonly signal: AbortSignal | null;
}

/** Sets who writes the summary, for which window, and in which form. */
export interface CompactInFlightOptions {
  /** Asks a model for the summary and resolves to its text. */
  readonly summarize: (request: InFlightSummaryRequest) => Promise<string>;
  /** Limits the question to the summarizer's window, in tokens. @default the target of the request that overflowed */
  readonly windowTokens?: number | null;
  /**
   * Sets the form of the acknowledgement: Anthropic's list of blocks, or a string, which every provider accepts.
   * @default "text"
   */
  readonly content?: "blocks" | "text";
  /** Receives the event `guard.summary-failed`. @default none */
  readonly onEvent?: (event: GuardEvent) => void;
}

const inFlightTable: OptionTable<CompactInFlightOptions> = {
  summarize: optionKinds.required(optionKinds.callback),
  windowTokens: optionKinds.orNull(optionKinds.number({ min: 0 })),
  content: optionKinds.oneOf(["blocks", "text"]),
  onEvent: optionKinds.callback,
};

const system = "You are a conversation summarizer. Be concise and factual.";
const question =
  "Summarize the conversation below so that it can continue without it. Keep decisions, facts, names, paths, numbers and what is still open.";
const maxOutputTokens = 2048;
/** Limits how often the question is halved when the summarizer itself overflows. */
const mostHalvings = 3;
const charactersPerToken = 3;

/** Splits n messages: half of them, and at least two, are compressed. A fifth of them, and at least four, are kept. */
export function inFlightSplit(messageCount: number): { readonly compress: number; readonly keep: number } {
  const keep = Math.max(4, Math.floor(messageCount * 0.2));
  return { keep, compress: Math.min(Math.max(2, Math.floor(messageCount * 0.5)), Math.max(0, messageCount - keep)) };
}

/**
 * Creates a compaction for use during a call: the older half of the messages becomes a summary. One call writes the
 * summary, with a prompt that fits the summarizer's window. When that call fails, a note replaces the old messages, and
 * the event `guard.summary-failed` reports the error. Four messages and fewer stay unchanged.
 */
export function compactInFlight(options: CompactInFlightOptions): CompactMessages {
  assertKnownOptions<CompactInFlightOptions>("compactInFlight", options, inFlightTable);
  return async ({ messages, targetTokens, signal }) => {
    const instructions = countInstructions(messages);
    const conversation = messages.slice(instructions);
    if (conversation.length <= 4) return null;
    const cut = findCut(conversation, inFlightSplit(conversation.length).compress, 0);
    if (cut === null) return null;
    const window = options.windowTokens ?? targetTokens;
    const summary = await summaryOf(options, conversation.slice(0, cut), window, signal);
    const rest = conversation.slice(cut);
    const isUserNext = isFields(rest[0]) && rest[0]["role"] === "user";
    return {
      messages: [
        ...messages.slice(0, instructions),
        { role: "user", content: `[Previous conversation summary]\n${summary}` },
        // Without the acknowledgement two user messages would follow each other, and roles must alternate.
        ...(isUserNext ? [acknowledgement(options.content ?? "text")] : []),
        ...rest,
      ],
    };
  };
}

function acknowledgement(content: "blocks" | "text"): object {
  const text = "Understood, I have the context.";
  return { role: "assistant", content: content === "blocks" ? [{ type: "text", text }] : text };
}

async function summaryOf(
  options: CompactInFlightOptions,
  messages: readonly unknown[],
  windowTokens: number | null,
  signal: AbortSignal | null,
): Promise<string> {
  let text = serializeMessages(messages);
  const room = windowTokens === null ? text.length : (windowTokens * 0.9 - maxOutputTokens) * charactersPerToken;
  let most = Math.max(1000, Math.floor(room));
  for (let halvings = 0; ; halvings++) {
    text = shortenText(text, most)?.text ?? text;
    try {
      const summary = await options.summarize({ system, prompt: `${question}\n\n${text}`, maxOutputTokens, signal });
      if (summary.trim() === "") throw new TypeError("the summary is empty");
      return summary.trim();
    } catch (cause) {
      if (signal?.aborted === true) throw cause;
      const isTooLong = classifyOverflow(cause).overflow;
      if (isTooLong && halvings < mostHalvings) {
        most = Math.max(500, Math.floor(text.length / 2));
        continue;
      }
      options.onEvent?.({ name: "guard.summary-failed", cause, droppedMessages: messages.length });
      return `(${messages.length} earlier messages were left out; no summary of them could be made.)`;
    }
  }
}
