import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, hasErrorCode, type Summarizer } from "@throughline/core";
import { classifyOverflow } from "@throughline/guard";
import { type GuardChange, ollamaRequestFields } from "@throughline/guard/internal";
import { systemRandom } from "@throughline/core/internal";
import type { TokenEstimator } from "@throughline/tokens";
import {
  bodyText,
  chainIds,
  type CompactedHistory,
  splitRequest,
  type SplitRequest,
  type WireLog,
  withMember,
} from "./wire/index.ts";
import type { GatewayLog } from "./gateway-log.ts";
import { AnswerCopy } from "./answer-copy.ts";
import type { Came, SentCall } from "./call-facts.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { Upstream } from "./gateway-options.ts";
import { newCallId } from "./new-call-id.ts";
import { type AskUpstream, OllamaWindows } from "./ollama-windows.ts";
import { type PeekedAnswer, unread } from "./peek-answer.ts";
import { type GuardAction, type RebuildReason, rebuildRequest, type RebuiltRequest } from "./rebuild-request.ts";
import { readRefusal } from "./refusal.ts";

export interface RebuiltCall {
  readonly recordId: string;
  readonly action: GuardAction;
  readonly changes: readonly GuardChange[];
  readonly compacted: CompactedHistory | null;
  readonly split: SplitRequest;
  readonly body: Buffer;
  readonly requestSha256: string;
  readonly startedMs: number;
  /**
   * Is true when the client gets the answer to the rebuilt request. It is false when the client gets the first refusal.
   */
  readonly isAnswer: boolean;
  /** Holds the result of the attempt that the client does not see, because that attempt is recorded too. */
  readonly other: Came;
}

export interface PassedCall {
  readonly peeked: PeekedAnswer;
  /** Is null when the gateway sent only the client's request, unchanged. */
  readonly rebuilt: RebuiltCall | null;
}

export interface CallToGuard {
  readonly upstream: Upstream;
  readonly sent: SentCall;
  /** Sends the client's own body for null. */
  readonly send: (body: Buffer | null) => Promise<IncomingMessage>;
  readonly ask: AskUpstream;
  /** Yields null when the session is not chosen in time, so that the rebuild does not wait for the store. */
  readonly log: () => Promise<WireLog | null>;
  readonly signal: AbortSignal;
}

export interface GuardParts {
  readonly clock: Clock;
  readonly log: GatewayLog;
  readonly metrics: GatewayMetrics;
  readonly estimator: TokenEstimator;
  readonly summarizers: readonly Summarizer[];
}

/** A model may write the summary, so a rebuild may take minutes. */
const mostRebuildMs = 180_000;

/**
 * Rebuilds a request and sends it once more when the provider refuses its size or its history. A request that the
 * provider would silently cut is rebuilt before it is sent.
 */
export class Guard {
  readonly #parts: GuardParts;
  readonly #windows: OllamaWindows;

  constructor(parts: GuardParts) {
    this.#parts = parts;
    this.#windows = new OllamaWindows(parts.clock, parts.estimator);
  }

  /** @throws {ThroughlineError} UPSTREAM_UNREACHABLE, ABORTED when the client's own request gets no answer */
  async pass(call: CallToGuard): Promise<PassedCall> {
    const { upstream, sent, send } = call;
    const windowTokens = upstream.api === "ollama" ? await this.#exceeded(call) : null;
    if (windowTokens !== null) {
      const passed = await this.#passInWindow(call, windowTokens);
      if (passed !== null) return passed;
    }
    const firstMs = this.#parts.clock.nowMs();
    const first = await readRefusal(sent.api, upstream.api, await send(null));
    if (first.refusal === null) return { peeked: first.peeked, rebuilt: null };
    const rebuilt = await this.#rebuild(call, { refusal: first.refusal, windowTokens: null });
    if (rebuilt === null) return { peeked: first.peeked, rebuilt: null };
    const made = this.#bodyOf(sent, rebuilt.text, rebuilt);
    if (made === null) return { peeked: first.peeked, rebuilt: null };
    let second: Awaited<ReturnType<typeof readRefusal>>;
    try {
      // Counting tokens blocks the event loop. Yield so that a connection that the provider closed meanwhile is removed
      // from the pool.
      await nextTurn();
      second = await readRefusal(sent.api, upstream.api, await send(made.body));
    } catch (error) {
      this.#parts.metrics.guard("failed");
      return { peeked: first.peeked, rebuilt: { ...made, isAnswer: false, other: { error } } };
    }
    // A retryable refusal passes to the client, because repeating the request may help. Any other refusal concerns a
    // request that the client never wrote, so the client gets the first refusal.
    const isAnswer = second.refusal === null || classifyOverflow(second.refusal).isRetryable;
    this.#parts.metrics.guard(second.refusal === null ? rebuilt.action : "refused");
    const other = isAnswer ? cameOf(first.peeked, firstMs) : cameOf(second.peeked, made.startedMs);
    return { peeked: isAnswer ? second.peeked : first.peeked, rebuilt: { ...made, isAnswer, other } };
  }

  /**
   * Sends a request that fits the window and asks the provider not to truncate it. The result is null when the request
   * cannot be made to fit.
   */
  async #passInWindow(call: CallToGuard, windowTokens: number): Promise<PassedCall | null> {
    const { upstream, sent, send } = call;
    const rebuilt = await this.#rebuild(call, { refusal: null, windowTokens });
    if (rebuilt === null) return null;
    let { text } = rebuilt;
    for (const [name, value] of Object.entries(ollamaRequestFields)) text = withMember(text, name, value);
    const made = this.#bodyOf(sent, text, rebuilt);
    if (made === null) return null;
    const { peeked, refusal } = await readRefusal(sent.api, upstream.api, await send(made.body));
    this.#parts.metrics.guard(refusal === null ? rebuilt.action : "refused");
    const other = { error: new RangeError(`The provider would have cut the request to ${windowTokens} tokens.`) };
    return { peeked, rebuilt: { ...made, isAnswer: true, other } };
  }

  async #exceeded({ upstream, sent, ask }: CallToGuard): Promise<number | null> {
    try {
      return await this.#windows.exceeded(upstream.name, sent.split, ask);
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  async #rebuild(
    { sent, signal, log }: CallToGuard,
    reason: Omit<RebuildReason, "recordIds" | "log">,
  ): Promise<RebuiltRequest | null> {
    const { estimator, summarizers } = this.#parts;
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(mostRebuildMs)]);
    try {
      const known = { recordIds: chainIds(sent.split), log: await log() };
      return await rebuildRequest(sent.split, { ...reason, ...known }, { estimator, summarizers, signal: bounded });
    } catch (error) {
      if (!signal.aborted && !hasErrorCode(error, "ABORTED")) this.#failed(error);
      return null;
    }
  }

  #bodyOf(
    { api }: SentCall,
    text: string,
    { action, changes, compacted }: RebuiltRequest,
  ): Omit<RebuiltCall, "isAnswer" | "other"> | null {
    const body = Buffer.from(text);
    const split = splitRequest(api, bodyText(body) ?? "");
    if (split === null) return null;
    return {
      recordId: newCallId(systemRandom),
      action,
      changes,
      compacted,
      split,
      body,
      requestSha256: createHash("sha256").update(body).digest("hex"),
      startedMs: this.#parts.clock.nowMs(),
    };
  }

  /** A failed rebuild is only logged and counted, because the client still gets the provider's first answer. */
  #failed(error: unknown): void {
    this.#parts.metrics.guard("failed");
    this.#parts.log.failed("A request could not be rebuilt.", error);
  }
}

/** Reads no further, because no client receives this answer. The part that was read goes into the call's record. */
function cameOf({ answer, chunks }: PeekedAnswer, firstByteMs: number): Came {
  const copy = new AnswerCopy();
  for (const chunk of chunks) copy.take(chunk);
  answer.destroy();
  return { outgoing: answer, copy, end: "whole", firstByteMs };
}

export async function passUnchanged(sending: Promise<IncomingMessage>): Promise<PassedCall> {
  return { peeked: unread(await sending), rebuilt: null };
}
