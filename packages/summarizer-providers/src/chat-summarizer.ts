import {
  type AssistantMessage,
  type Clock,
  type Summarizer,
  type SummaryReply,
  type SummaryRequest,
  ThroughlineError,
} from "@throughline/core";
import {
  assertKnownOptions,
  type AuditProblem,
  auditSummary,
  Deadline,
  optionKinds,
  type OptionTable,
  type SessionModel,
  systemClock,
  untilAborted,
} from "@throughline/core/internal";
import { saysOverflow } from "./is-overflow.ts";
import { parseSummary } from "./parse-summary.ts";
import { shapeInput, type ShapeOptions } from "./shape-input.ts";
import { nextChunk } from "./split-input.ts";
import { summaryPrompt, summarySystemOf, type SummaryStyle } from "./summary-prompt.ts";
import { readTranscript, writeTranscript, type Segment } from "./transcript.ts";

/** Sets the model, the style and the limits of `createChatSummarizer`. */
export interface ChatSummarizerOptions {
  /**
   * Sets the model that writes. Its messages must be `{role, content}`, as with Anthropic, OpenAI and Ollama. Its
   * `windowTokens` limits a call; without it the provider's value does.
   */
  readonly model: SessionModel;
  /** Names the summarizer in records. @default "<provider>/<model>" */
  readonly name?: string | undefined;
  /** Sets how the model is asked. @default "sections" */
  readonly style?: SummaryStyle | undefined;
  /** Limits all calls of one summary together, in milliseconds. @default 180000 */
  readonly deadlineMs?: number | undefined;
  /** Counts the tokens of a text, so that each call fits the window. @default a token for four characters */
  readonly countText?: ((text: string) => number) | undefined;
  /** Returns whether a call failed because it was too long. @default by the providers' usual words */
  readonly isOverflow?: ((error: unknown) => boolean) | undefined;
  /**
   * Limits a message in characters. The middle of a longer message is cut out.
   * @default a quarter of the model's window, from 2,000 to 20,000 characters; 20,000 where the window is unknown
   */
  readonly messageChars?: number | undefined;
  /** Sets how successful tool results are passed to the model. @default "marker" */
  readonly toolResults?: ShapeOptions["toolResults"] | undefined;
  /** Times the deadline. @default the system's */
  readonly clock?: Clock | undefined;
}

const table: OptionTable<ChatSummarizerOptions> = {
  model: optionKinds.required(optionKinds.object),
  name: optionKinds.filledText,
  style: optionKinds.oneOf(["sections", "concise"]),
  deadlineMs: optionKinds.integer({ min: 1 }),
  countText: optionKinds.callback,
  isOverflow: optionKinds.callback,
  messageChars: optionKinds.integer({ min: 1 }),
  toolResults: optionKinds.oneOf(["marker", "keep"]),
  clock: optionKinds.objectWith("nowMs", "sleep"),
};

/** Accepts a whole session model, so the table lists the fields that the summarizer ignores as well. */
const modelTable: OptionTable<SessionModel> = {
  chat: optionKinds.required(optionKinds.objectWith("chat")),
  modelId: optionKinds.required(optionKinds.filledText),
  windowTokens: optionKinds.orNull(optionKinds.integer({ min: 1 })),
  assumedWindowTokens: optionKinds.any,
  maxOutputTokens: optionKinds.any,
  thinkingLevel: optionKinds.any,
};

/** Leaves room for token estimates that are a fifth too low. */
const margin = 1.2;
/**
 * Sets the share of the window for one part of a conversation, and the minimum share. The rest is needed for the
 * prompt, the earlier summary and the answer.
 */
const chunkShare = 0.4;
const leastChunkShare = 0.15;
/** Limits the answer to a share of the window, and the previous summary as well. */
const answerShare = 0.25;
const shrinkFactor = 0.75;
const mostShrinks = 2;
const leastTokens = 500;
/** Limits one long message, so that it does not displace the rest of the conversation. */
const mostMessageChars = 20_000;
const leastMessageChars = 2000;

/**
 * Creates a summarizer that calls a model. A conversation above the model's window is summarized in parts, each
 * together with the summary of the earlier parts. A part that is still too long is split, so nothing is left out.
 * @throws {ThroughlineError} from `summarize`: ABORTED by the caller's signal, SUMMARY_REJECTED for a text that cannot
 *   stand for the conversation, SUMMARY_FAILED after the deadline; else the model's own error
 */
export function createChatSummarizer(options: ChatSummarizerOptions): Summarizer {
  assertKnownOptions<ChatSummarizerOptions>("createChatSummarizer", options, table);
  assertKnownOptions<SessionModel>("createChatSummarizer", options.model, modelTable, "model");
  const { chat, modelId, windowTokens: givenTokens } = options.model;
  let known: { readonly tokens: number | null } | null = null;
  // The provider is asked once, because the window of a model does not change.
  const windowTokens = async (signal: AbortSignal): Promise<number | null> => {
    if (givenTokens !== undefined) return givenTokens;
    known ??= { tokens: (await chat.windowTokens?.(modelId, signal)) ?? null };
    return known.tokens;
  };
  return { summarize: (request) => new SummaryRun(options, request, windowTokens).run() };
}

class SummaryRun {
  readonly #options: ChatSummarizerOptions;
  readonly #request: SummaryRequest;
  readonly #countText: (text: string) => number;
  readonly #name: string;
  readonly #style: SummaryStyle;
  readonly #windowTokens: (signal: AbortSignal) => Promise<number | null>;
  readonly #usage: Record<string, number> = { calls: 0 };
  #shrinks = 0;

  constructor(
    options: ChatSummarizerOptions,
    request: SummaryRequest,
    windowTokens: (signal: AbortSignal) => Promise<number | null>,
  ) {
    this.#options = options;
    this.#windowTokens = windowTokens;
    this.#request = request;
    this.#countText = options.countText ?? ((text): number => Math.ceil(text.length / 4));
    this.#style = options.style ?? "sections";
    this.#name = options.name ?? `${options.model.chat.provider}/${options.model.modelId}`;
  }

  async run(): Promise<SummaryReply> {
    const { clock = systemClock, deadlineMs = 180_000 } = this.#options;
    const signal = this.#request.signal ?? null;
    await using deadline = new Deadline(clock, deadlineMs, signal);
    const { instruction } = this.#request;
    const work =
      instruction === undefined ? this.#summarize(deadline.signal) : this.#write(instruction, deadline.signal);
    try {
      const summary = await untilAborted(work, deadline.signal);
      return { summary, source: this.#name, usage: this.#usage };
    } catch (error) {
      if (signal?.aborted === true)
        throw new ThroughlineError("ABORTED", "The summary was aborted.", { cause: signal.reason });
      if (!deadline.isOver) throw error;
      const message = `${this.#name} gave no summary within ${deadlineMs} ms.`;
      throw new ThroughlineError("SUMMARY_FAILED", message, {
        cause: error,
        details: { source: this.#name, deadlineMs },
      });
    }
  }

  /** The text need not stand for the conversation, so it is not audited here. */
  async #write(instruction: string, signal: AbortSignal): Promise<string> {
    const { chat, modelId } = this.#options.model;
    const { text, maxOutputTokens } = this.#request;
    const messages = [{ role: "user", content: text }];
    const { message } = await chat.chat({ modelId, system: instruction, messages, maxOutputTokens, signal });
    this.#count(message);
    return textOf(message);
  }

  async #summarize(signal: AbortSignal): Promise<string> {
    const windowTokens = await this.#windowTokens(signal);
    const { messageChars = usualMessageChars(windowTokens), toolResults = "marker" } = this.#options;
    const mostOutput = this.#mostOutput(windowTokens);
    let rest = shapeInput(await readTranscript(this.#request.text), { messageChars, toolResults });
    let previous = this.#request.previousSummary;
    // A previous summary that would fill the window is summarized as a part of the conversation.
    if (previous !== null && windowTokens !== null && this.#countText(previous) > windowTokens * answerShare) {
      rest = [{ speaker: "Summary of the earlier messages", text: previous }, ...rest];
      previous = null;
    }
    let most = this.#mostInput(windowTokens, mostOutput, previous, rest);
    for (let number = 1; ; number++) {
      const { chunk, rest: left, tokens } = nextChunk(rest, most, this.#countText);
      const part = { number, isLast: left.length === 0 };
      const answer = await this.#ask({ chunk, previous, mostOutput, part }, tokens, signal);
      if (answer.kind === "too-long") {
        most = answer.mostTokens;
        number -= 1;
        continue;
      }
      if (left.length === 0) return answer.summary;
      previous = answer.summary;
      rest = left;
    }
  }

  #mostOutput(windowTokens: number | null): number {
    const asked = this.#request.maxOutputTokens;
    return windowTokens === null ? asked : Math.min(asked, Math.floor(windowTokens * answerShare));
  }

  /** Returns the token limit for one part: the whole window if everything fits, else a share of the window. */
  #mostInput(
    windowTokens: number | null,
    mostOutput: number,
    previous: string | null,
    rest: readonly Segment[],
  ): number {
    if (windowTokens === null) return Number.MAX_SAFE_INTEGER;
    const fixed = this.#countText(
      this.#prompt([], previous, mostOutput, { number: 1, isLast: false }) + summarySystemOf(this.#style),
    );
    const room = Math.floor((windowTokens - mostOutput) / margin) - fixed;
    if (this.#countText(writeTranscript(rest)) <= room) return Math.max(room, leastTokens);
    // Later parts include the summary of the earlier parts, which may be as long as an answer.
    const later = room - (previous === null ? mostOutput : 0);
    const share = Math.floor((windowTokens * chunkShare) / margin);
    return Math.max(Math.min(share, later), Math.floor((windowTokens * leastChunkShare) / margin), 1);
  }

  #prompt(
    chunk: readonly Segment[],
    previousSummary: string | null,
    maxOutputTokens: number,
    part: { readonly number: number; readonly isLast: boolean },
  ): string {
    return summaryPrompt({ style: this.#style, text: writeTranscript(chunk), previousSummary, maxOutputTokens, part });
  }

  async #ask(
    asked: {
      readonly chunk: readonly Segment[];
      readonly previous: string | null;
      readonly mostOutput: number;
      readonly part: { readonly number: number; readonly isLast: boolean };
    },
    tokens: number,
    signal: AbortSignal,
  ): Promise<
    { readonly kind: "summary"; readonly summary: string } | { readonly kind: "too-long"; readonly mostTokens: number }
  > {
    const { model, isOverflow = saysOverflow } = this.#options;
    const { chat, modelId } = model;
    const { chunk, previous, mostOutput, part } = asked;
    try {
      const { message } = await chat.chat({
        modelId,
        system: summarySystemOf(this.#style),
        messages: [{ role: "user", content: this.#prompt(chunk, previous, mostOutput, part) }],
        maxOutputTokens: mostOutput,
        signal,
      });
      this.#count(message);
      const coveredTokens = tokens + this.#countText(previous ?? "");
      return { kind: "summary", summary: this.#accepted(message, mostOutput, coveredTokens) };
    } catch (error) {
      if (this.#shrinks === mostShrinks || tokens <= leastTokens || signal.aborted || !isOverflow(error)) throw error;
      this.#shrinks += 1;
      return { kind: "too-long", mostTokens: Math.max(leastTokens, Math.floor(tokens * shrinkFactor)) };
    }
  }

  #count({ usage }: AssistantMessage): void {
    this.#usage["calls"] = (this.#usage["calls"] ?? 0) + 1;
    for (const [name, value] of Object.entries(usage ?? {}))
      if (typeof value === "number") this.#usage[name] = (this.#usage[name] ?? 0) + value;
  }

  #accepted(message: AssistantMessage, maxOutputTokens: number, coveredTokens: number): string {
    const text = textOf(message);
    const said = stopProblem(message);
    if (said !== null) throw this.#rejected(said, text);
    // A text of this length cannot be a summary within the token limit, so it is not parsed.
    if (text.length > Math.max(maxOutputTokens * 4, 250) * 40) throw this.#rejected("too-large", text);
    const summary = parseSummary(text).text;
    const problem = auditSummary(summary, { maxOutputTokens, coveredTokens, countText: this.#countText });
    if (problem !== null) throw this.#rejected(problem, text);
    return summary;
  }

  #rejected(problem: AuditProblem, text: string): ThroughlineError {
    const details = { source: this.#name, problem, characters: text.length };
    return new ThroughlineError("SUMMARY_REJECTED", `What ${this.#name} wrote is no summary: ${problem}.`, { details });
  }
}

/**
 * Takes a quarter of the window: with four characters per token, that is as many characters as the window has tokens.
 */
function usualMessageChars(windowTokens: number | null): number {
  return Math.max(leastMessageChars, Math.min(mostMessageChars, windowTokens ?? mostMessageChars));
}

function textOf({ content }: AssistantMessage): string {
  if (typeof content === "string") return content;
  return content
    .flatMap((block) => ("text" in block && block.type === "text" ? [String(block.text)] : []))
    .join("\n")
    .trim();
}

function stopProblem({ content, stopReason }: AssistantMessage): AuditProblem | null {
  const hasCall = typeof content !== "string" && content.some(({ type }) => type === "toolCall");
  if (hasCall || stopReason === "toolUse") return "tool-call";
  if (stopReason === "length") return "cut-off";
  return stopReason === "error" || stopReason === "aborted" ? "refusal" : null;
}
