import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import type { NeutralBlock, NeutralMessage, NeutralToolResult } from "./neutral-message.ts";

/**
 * States how a tool's result was shortened. The caller records it with the call and passes it back for every later
 * call.
 */
export interface Truncation {
  /** States the record of the result. */
  readonly recordId: string;
  /** Counts the UTF-16 code units that stay at the beginning. */
  readonly headChars: number;
  /** Counts the UTF-16 code units that stay at the end. */
  readonly tailChars: number;
  /**
   * States the last seq at the time of the decision. All messages up to it were written with the whole result. Null
   * when the result was never sent whole.
   */
  readonly sentToSeq: number | null;
}

/** Configures how tool results are shortened. */
export interface TruncateOptions {
  /** Limits the length of a result, in UTF-16 code units. @default no limit */
  readonly maxChars?: number | undefined;
  /** Lists the decisions of earlier calls. They take precedence over the current limit. @default none */
  readonly recorded?: readonly Truncation[] | undefined;
  /** States the last seq that was sent to a model. @default none */
  readonly sentToSeq?: number | null | undefined;
}

export const truncateTable: OptionTable<TruncateOptions> = {
  maxChars: optionKinds.number({ min: 0 }),
  recorded: optionKinds.list,
  sentToSeq: optionKinds.orNull(optionKinds.integer({ min: 0 })),
};

/** Holds a context with shortened tool results, and each decision. */
export interface TruncatedContext extends Context {
  /** Lists every decision in force. Record the new ones with the call. */
  readonly truncations: readonly Truncation[];
}

/** The end of an output usually holds the error, and the beginning the requested content, so both get a share. */
const tailShare = 0.4;

/**
 * Shortens long tool results in the middle. A result that was shortened once is always shortened in the same way, to
 * the byte. A result that was sent whole and is now shortened unbinds the thinking after it.
 */
export function truncateResults(context: Context, options: TruncateOptions = {}): TruncatedContext {
  assertKnownOptions<TruncateOptions>("truncateResults", options, truncateTable);
  const truncation = new ResultTruncation(options, context.messages.at(-1)?.seq ?? 0);
  const messages = context.messages.map((message) => truncation.take(message));
  return { ...context, messages, truncations: truncation.inForce };
}

export class ResultTruncation {
  readonly inForce: Truncation[] = [];
  private readonly maxChars: number;
  private readonly sentToSeq: number | null;
  private readonly lastSeq: number;
  private readonly known: ReadonlyMap<string, Truncation>;
  private unboundToSeq = 0;

  /**
   * Starts with the decisions of earlier calls.
   * @param lastSeq the seq of the newest message; the reply to a request comes after the messages of the request
   */
  constructor({ maxChars = Infinity, recorded = [], sentToSeq = null }: TruncateOptions, lastSeq: number) {
    this.maxChars = maxChars;
    this.sentToSeq = sentToSeq;
    this.lastSeq = lastSeq;
    this.known = new Map(recorded.map((truncation) => [truncation.recordId, truncation]));
  }

  take(message: NeutralMessage): NeutralMessage {
    const isUnbound = message.seq <= this.unboundToSeq && !message.isPrefixChanged;
    const bound: NeutralMessage = isUnbound ? { ...message, isPrefixChanged: true } : message;
    if (bound.role !== "toolResult") return bound;
    const truncation = this.known.get(bound.recordId) ?? this.decide(bound);
    if (truncation === null) return bound;
    this.inForce.push(truncation);
    this.unboundToSeq = Math.max(this.unboundToSeq, truncation.sentToSeq ?? 0);
    return { ...bound, content: shorten(bound.content, truncation) };
  }

  private decide(message: NeutralToolResult): Truncation | null {
    const { maxChars, sentToSeq } = this;
    if (maxChars === Infinity || textOf(message.content).length <= maxChars) return null;
    const tailChars = Math.floor(maxChars * tailShare);
    const isSent = sentToSeq !== null && message.seq <= sentToSeq;
    return {
      recordId: message.recordId,
      headChars: maxChars - tailChars,
      tailChars,
      sentToSeq: isSent ? Math.max(sentToSeq, this.lastSeq) : null,
    };
  }
}

function textOf(content: readonly NeutralBlock[]): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function shorten(content: readonly NeutralBlock[], { headChars, tailChars }: Truncation): readonly NeutralBlock[] {
  const text = textOf(content);
  const left = text.length - headChars - tailChars;
  // The record was edited since the decision and is already short, so it stays unchanged.
  if (left <= 0) return content;
  const head = text.slice(0, headChars);
  const tail = text.slice(text.length - tailChars);
  const short = `${head}\n[… ${left} characters left out …]\n${tail}`.toWellFormed();
  return [{ type: "text", text: short }, ...content.filter((block) => block.type !== "text")];
}
