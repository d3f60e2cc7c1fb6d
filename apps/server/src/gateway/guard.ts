import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, hasErrorCode, type Summarizer } from "@throughline/core";
import { classifyOverflow } from "@throughline/guard";
import { type GuardChange, ollamaRequestFields } from "@throughline/guard/internal";
import type { TokenEstimator } from "@throughline/tokens";
import {
  bodyText,
  chainIds,
  type CompactedHistory,
  splitRequest,
  type SplitRequest,
  type WireLog,
  withMember,
} from "@throughline/wire/internal";
import type { ServerLog } from "../operations/request-log.ts";
import { AnswerCopy } from "./answer-copy.ts";
import type { Came, SentCall } from "./call-facts.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { Upstream } from "./gateway-options.ts";
import { type AskUpstream, OllamaWindows } from "./ollama-windows.ts";
import { type PeekedAnswer, unread } from "./peek-answer.ts";
import { type GuardAction, type RebuildReason, rebuildRequest, type RebuiltRequest } from "./rebuild-request.ts";
import { readRefusal } from "./refusal.ts";

/** A second attempt of a call, with a request of ours. */
export interface RebuiltCall {
  readonly recordId: string;
  readonly action: GuardAction;
  readonly changes: readonly GuardChange[];
  readonly compacted: CompactedHistory | null;
  readonly split: SplitRequest;
  readonly body: Buffer;
  readonly requestSha256: string;
  readonly startedMs: number;
  /** Whether the client gets the answer to it, and not the first refusal. */
  readonly isAnswer: boolean;
  /** What came of the attempt that the client gets nothing of. */
  readonly other: Came;
}

/** What the client of a call gets. */
export interface PassedCall {
  readonly peeked: PeekedAnswer;
  /** Null: the request went to the provider as it came, and nothing else did. */
  readonly rebuilt: RebuiltCall | null;
}

export interface CallToGuard {
  readonly upstream: Upstream;
  readonly sent: SentCall;
  /** Sends a body in place of the client's; null: the client's own. */
  readonly send: (body: Buffer | null) => Promise<IncomingMessage>;
  readonly ask: AskUpstream;
  /** What the session of the call has; null where nobody knows in time. */
  readonly log: () => Promise<WireLog | null>;
  readonly signal: AbortSignal;
}

export interface GuardParts {
  readonly clock: Clock;
  readonly log: ServerLog;
  readonly metrics: GatewayMetrics;
  readonly estimator: TokenEstimator;
  readonly summarizers: readonly Summarizer[];
}

/** A summary may be written by a model. */
const mostRebuildMs = 180_000;

/** Sends a request once more, rebuilt, where the provider refuses its size or its history, or would cut it without a word. */
export class Guard {
  readonly #parts: GuardParts;
  readonly #windows: OllamaWindows;

  constructor(parts: GuardParts) {
    this.#parts = parts;
    this.#windows = new OllamaWindows(parts.clock, parts.estimator);
  }

  /** @throws {ThroughlineError} UPSTREAM_UNREACHABLE, ABORTED where the client's own request got no answer */
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
      // Counting tokens takes a while: a connection that the provider closed meanwhile must be known as closed.
      await nextTurn();
      second = await readRefusal(sent.api, upstream.api, await send(made.body));
    } catch (error) {
      this.#parts.metrics.guard("failed");
      return { peeked: first.peeked, rebuilt: { ...made, isAnswer: false, other: { error } } };
    }
    // What a later attempt may not meet is the client's to repeat; any other refusal is of a request that it never wrote.
    const isAnswer = second.refusal === null || classifyOverflow(second.refusal).isRetryable;
    this.#parts.metrics.guard(second.refusal === null ? rebuilt.action : "refused");
    const other = isAnswer ? cameOf(first.peeked, firstMs) : cameOf(second.peeked, made.startedMs);
    return { peeked: isAnswer ? second.peeked : first.peeked, rebuilt: { ...made, isAnswer, other } };
  }

  /** The request made to fit, with the wish that nothing of it be cut. Null where it cannot be made to. */
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
      recordId: `call-${randomBytes(15).toString("base64url")}`,
      action,
      changes,
      compacted,
      split,
      body,
      requestSha256: createHash("sha256").update(body).digest("hex"),
      startedMs: this.#parts.clock.nowMs(),
    };
  }

  /** What cannot be healed is passed on as it is. */
  #failed(error: unknown): void {
    this.#parts.metrics.guard("failed");
    this.#parts.log.failed("A request could not be rebuilt.", error);
  }
}

/** An answer that nobody gets, as far as it was read. */
function cameOf({ answer, chunks }: PeekedAnswer, firstByteMs: number): Came {
  const copy = new AnswerCopy();
  for (const chunk of chunks) copy.take(chunk);
  answer.destroy();
  return { outgoing: answer, copy, end: "whole", firstByteMs };
}

/** A call that is not guarded. */
export async function passUnchanged(sending: Promise<IncomingMessage>): Promise<PassedCall> {
  return { peeked: unread(await sending), rebuilt: null };
}
