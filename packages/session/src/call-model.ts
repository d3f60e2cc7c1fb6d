import {
  type AssistantMessage,
  type ChatDelta,
  type ChatReply,
  type ChatRequest,
  type Clock,
  hasErrorCode,
  ThroughlineError,
} from "@throughline/core";
import {
  applyChanges,
  type CompactionRequest,
  type GuardChange,
  type GuardedRequest,
  type GuardEvent,
  type GuardTurn,
  type LearnedLimits,
  resultLimitsFor,
  type ResultSettings,
} from "@throughline/guard/internal";
import { guardCall } from "@throughline/guard";
import type { Actual, Calibration, TokenCounter } from "@throughline/tokens/internal";
import { type CallUsage, readUsage, type ToolChoice } from "@throughline/core/internal";
import type { ContextEstimate } from "@throughline/tokens";
import { answerInTime, statedWindow } from "./answer-in-time.ts";
import type { CallActual, CallFacts, CallOutcome } from "./call-record.ts";
import { differenceBetween, sameMessages } from "./call-splice.ts";
import { HeldDeltas, type HoldBack } from "./held-deltas.ts";
import { prefixTokens, type Prompt, type PromptPrefix } from "./prompt.ts";
import type { PartialWriter } from "./partial-writer.ts";
import type { Emit } from "./session-event.ts";
import type { SessionModel } from "./session-options.ts";
import { forward } from "./turn-wait.ts";
import { ownToolName, wireToolName, withOwnToolNames, type WireTools } from "./wire-tools.ts";
import { storableReply } from "./storable-reply.ts";
import type { RecordedOutput } from "./output-schema.ts";

type ChatWait = Parameters<NonNullable<ChatRequest["onWait"]>>[0];

export interface CallContext {
  readonly turnId: string;
  readonly step: number;
  readonly model: SessionModel;
  readonly prefix: PromptPrefix;
  /** Holds the tools under the names that the provider receives. */
  readonly wireTools: WireTools;
  readonly toolChoice: ToolChoice;
  readonly output: RecordedOutput | null;
  readonly counter: TokenCounter;
  readonly calibration: Calibration;
  readonly limits: LearnedLimits;
  readonly windowTokens: number | null;
  readonly actual: Actual | null;
  readonly keptChanges: readonly GuardChange[];
  readonly guardTurn: GuardTurn;
  readonly fromSeq: number;
  readonly summaryId: () => string | null;
  /** Compacts the window and resolves to the new prompt; null when nothing was compacted. */
  readonly compact: ((request: CompactionRequest) => Promise<Prompt | null>) | null;
  /** Null leaves the limits of tool results to the guard. */
  readonly results: ResultSettings | null;
  readonly recordBytes: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly onDelta: ((delta: ChatDelta) => void) | null;
  readonly holdBack: HoldBack | null;
  /** Keeps the text that was shown; null where nothing keeps it. */
  readonly partial: PartialWriter | null;
  readonly emit: Emit | null;
  readonly onEstimate: (estimate: ContextEstimate, windowTokens: number | null) => void;
}

/**
 * No model writes this many characters in one answer. Throughline's adapters stop earlier; this limit stops other
 * adapters that never end.
 */
const maxStreamedCharacters = 8 * 1024 * 1024;

function tooLong(): ThroughlineError {
  const message = `The model's answer did not end within ${maxStreamedCharacters} characters, so it was stopped.`;
  return new ThroughlineError("MODEL_FAILED", message, { details: { characters: maxStreamedCharacters } });
}

/** Returns true when the length limit stopped the answer, not the caller. */
function isTooLong({ reason }: AbortSignal): boolean {
  return hasErrorCode(reason, "MODEL_FAILED");
}

/** The message is null only when nothing arrived. Each attempt has one entry in `calls`. */
export interface CallResult {
  readonly message: AssistantMessage | null;
  readonly calls: readonly CallFacts[];
  readonly usage: CallUsage | null;
  readonly limits: LearnedLimits;
  /** Holds the messages that the usage refers to; null when the guard changed them on the way. */
  readonly sent: readonly unknown[] | null;
  /** Holds the reason why no whole answer exists; null when there is one. */
  readonly error: unknown;
}

/**
 * Asks the model once, guarded. The function never throws: an error is part of the result, so that partial answers are
 * stored.
 */
export async function callModel(prompt: Prompt, context: CallContext): Promise<CallResult> {
  return new ModelCall(prompt, context).run();
}

class ModelCall {
  readonly #context: CallContext;
  #prompt: Prompt;
  #partial: AssistantMessage | null = null;
  #limits: LearnedLimits;
  /** Counts the changes that earlier attempts already recorded, so that each is stored once. */
  readonly #changes: GuardChange[] = [];
  #toldChanges = 0;
  #estimatedTokens = 0;
  readonly #calls: CallFacts[] = [];

  constructor(prompt: Prompt, context: CallContext) {
    this.#prompt = prompt;
    this.#context = context;
    this.#limits = context.limits;
  }

  async run(): Promise<CallResult> {
    const { model, prefix, counter, calibration, windowTokens, actual, keptChanges, guardTurn, results } =
      this.#context;
    const { signal, clock } = this.#context;
    const { chat, modelId, maxOutputTokens } = model;
    const { system, messages } = this.#prompt;
    const { countTokens } = chat;
    try {
      const outcome = await guardCall<ChatReply>({
        request: {
          messages,
          system,
          tools: prefix.tools,
          ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
        },
        model: { provider: chat.provider, modelId },
        counter,
        calibration,
        actual,
        windowTokens,
        keptChanges,
        limits: this.#limits,
        turn: guardTurn,
        ...(results === null ? {} : { resultLimits: resultLimitsFor(results, windowTokens) }),
        signal,
        compact: this.#context.compact === null ? null : (request) => this.#compact(request),
        countTokens:
          countTokens === undefined
            ? null
            : (request) => answerInTime(countTokens.call(chat, this.#chatRequest(request)), signal, clock),
        readWindow: chat.windowTokens === undefined ? null : () => statedWindow(chat, modelId, signal, clock),
        onEvent: (event) => this.#onGuard(event),
        call: (request, { attempt, keep }) => this.#ask(request, attempt, keep),
      });
      this.#limits = outcome.limits;
      const message = outcome.reply?.message ?? brokenOff(this.#partial);
      return this.#result(message, null);
    } catch (error) {
      return this.#result(this.#partial, error);
    }
  }

  #result(message: AssistantMessage | null, error: unknown): CallResult {
    const usage = readUsage(message?.usage);
    const isWhole = error === null && this.#calls.length === 1 && this.#changes.length === 0;
    return {
      message: message === null ? null : this.#kept(message),
      calls: this.#calls,
      usage,
      limits: this.#limits,
      sent: isWhole ? this.#prompt.messages : null,
      error,
    };
  }

  /**
   * The record stores the tools' own names, not the names for the provider. Its size is limited to that of a record.
   */
  #kept(message: AssistantMessage): AssistantMessage {
    return storableReply(withOwnToolNames(message, this.#context.wireTools), this.#context.recordBytes);
  }

  async #ask(request: GuardedRequest, attempt: number, keep: (partial: unknown) => void): Promise<ChatReply> {
    const { signal, emit, model, step, clock, wireTools } = this.#context;
    const index = this.#calls.push(this.#facts(request, attempt)) - 1;
    emit?.({ name: "call.started", step, attempt, estimatedTokens: this.#estimatedTokens });
    this.#partial = null;
    const { provider } = model.chat;
    const { toSeq: afterSeq } = this.#prompt;
    this.#context.partial?.begin({ step, attempt, afterSeq, provider, model: model.modelId });
    const { onDelta, end } = this.#listener();
    const ending = new AbortController();
    const endForwarding = forward([signal], ending);
    let isOver = false;
    let characters = 0;
    const take = (delta: ChatDelta): void => {
      if (isOver) return;
      characters += delta.type === "tool-call" ? 0 : delta.text.length;
      if (characters > 0) this.#noteFirstText(index);
      if (characters > maxStreamedCharacters) ending.abort(tooLong());
      else onDelta?.(delta.type === "tool-call" ? { ...delta, name: ownToolName(delta.name, wireTools) } : delta);
    };
    try {
      const answer = model.chat.chat({
        ...this.#chatRequest(request),
        signal: ending.signal,
        // After a model was abandoned, its late words must not reach the listener.
        ...(onDelta === null ? {} : { onDelta: take }),
        ...(emit === null
          ? {}
          : { onWait: (wait: ChatWait) => (isOver ? null : emit({ name: "call.waiting", ...wait })) }),
        onPartial: (given) => {
          const partial = isTooLong(ending.signal) ? { ...given, stopReason: "error" } : given;
          this.#partial = partial;
          keep(partial);
        },
      });
      const reply = await answerInTime(answer, ending.signal, clock);
      end();
      this.#finish(index, "answered", readUsage(reply.usage) ?? readUsage(reply.message.usage));
      return reply;
    } catch (error) {
      this.#finish(index, signal.aborted ? "aborted" : "failed", readUsage(this.#received()?.usage));
      throw isTooLong(ending.signal) ? ending.signal.reason : error;
    } finally {
      isOver = true;
      endForwarding();
    }
  }

  /** Each attempt gets a new listener, because an attempt starts its answer from the beginning. */
  #listener(): { readonly onDelta: ((delta: ChatDelta) => void) | null; readonly end: () => void } {
    const { onDelta: show, holdBack, partial } = this.#context;
    if (show === null) return { onDelta: null, end: () => {} };
    const onDelta = (delta: ChatDelta): void => {
      if (delta.type === "text") partial?.take(delta.text);
      show(delta);
    };
    if (holdBack === null) return { onDelta, end: () => {} };
    const held = new HeldDeltas(onDelta, holdBack);
    return { onDelta: (delta) => held.take(delta), end: () => held.end() };
  }

  /** This is a method, because the compiler narrows `#partial` to null after the assignment in `#ask`. */
  #received(): AssistantMessage | null {
    return this.#partial;
  }

  #chatRequest(request: GuardedRequest): Parameters<SessionModel["chat"]["chat"]>[0] {
    const { model, signal, wireTools, toolChoice, output } = this.#context;
    const choice = typeof toolChoice === "object" ? { tool: wireToolName(toolChoice.tool, wireTools) } : toolChoice;
    const { thinkingLevel, modelId } = model;
    return {
      modelId,
      system: request.system,
      messages: request.messages,
      maxOutputTokens: request.maxOutputTokens,
      signal,
      ...(request.tools === undefined ? {} : { tools: wireTools.definitions }),
      ...(choice === "auto" ? {} : { toolChoice: choice }),
      ...(output?.as === "json" ? { output: { name: output.name, schema: output.schema } } : {}),
      ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    };
  }

  #finish(index: number, outcome: CallOutcome, usage: CallUsage | null): void {
    const call = this.#calls[index] as CallFacts;
    const finished = {
      ...call,
      durationMs: this.#msSince(call.startedMs),
      outcome,
      actual: usage === null ? null : actualOf(usage),
    };
    this.#calls[index] = finished;
    this.#context.emit?.({ name: "call.finished", call: finished });
  }

  #noteFirstText(index: number): void {
    const call = this.#calls[index] as CallFacts;
    if (call.firstTextMs === null) this.#calls[index] = { ...call, firstTextMs: this.#msSince(call.startedMs) };
  }

  /** The clock of a machine may be set back during a call. */
  #msSince(startedMs: number | null): number | null {
    return startedMs === null ? null : Math.max(0, this.#context.clock.nowMs() - startedMs);
  }

  /** Records what the attempt sent, so that `rebuildCall` can restore its messages from the log. */
  #facts(request: GuardedRequest, attempt: number): CallFacts {
    const { turnId, step, model, prefix, fromSeq, windowTokens, summaryId, keptChanges, counter } = this.#context;
    const { toolChoice, output } = this.#context;
    const { toSeq, headId, messages, cut } = this.#prompt;
    const changes = this.#changes.slice(this.#toldChanges);
    this.#toldChanges = this.#changes.length;
    const isAsRendered = request.messages === messages && this.#changes.length === 0;
    const difference = isAsRendered
      ? sameMessages
      : differenceBetween(applyChanges(messages, [...keptChanges, ...this.#changes]), request.messages, this.#changes);
    return {
      turnId,
      step,
      attempt,
      provider: model.chat.provider,
      api: model.chat.api,
      model: model.modelId,
      fromSeq,
      toSeq,
      headId,
      summaryId: summaryId(),
      messageCount: request.messages.length,
      systemHash: prefix.systemHash,
      toolsHash: prefix.toolsHash,
      prefixTokens: prefixTokens(prefix, counter),
      estimatedTokens: this.#estimatedTokens,
      maxOutputTokens: request.maxOutputTokens,
      windowTokens,
      startedMs: this.#context.clock.nowMs(),
      durationMs: null,
      firstTextMs: null,
      outcome: "failed",
      actual: null,
      changes,
      ...difference,
      cut,
      ...(toolChoice === "auto" ? {} : { toolChoice }),
      ...(output === null ? {} : { output }),
    };
  }

  #onGuard(event: GuardEvent): void {
    if (event.name === "guard.attempt") {
      this.#estimatedTokens = event.estimate.tokens;
      this.#context.onEstimate(event.estimate, event.windowTokens);
    } else if (event.name === "guard.shrunk") {
      this.#changes.push(...event.changes);
    } else if (event.name === "guard.learned") {
      this.#limits = event.limits;
    } else if (event.name === "guard.overflow" && event.attempt !== null) {
      this.#overflowed();
    }
    this.#context.emit?.(event);
  }

  /** Only the guard can tell that a failed attempt overflowed, or that an answer of status 200 was none. */
  #overflowed(): void {
    const last = this.#calls.at(-1);
    const outcome = this.#partial === null && last?.outcome !== "answered" ? "overflowed" : "partial";
    if (last !== undefined) this.#calls[this.#calls.length - 1] = { ...last, outcome };
  }

  async #compact(request: CompactionRequest): Promise<{ readonly messages: readonly unknown[] } | null> {
    const compacted = (await this.#context.compact?.(request)) ?? null;
    if (compacted === null) return null;
    this.#prompt = compacted;
    return { messages: applyChanges(compacted.messages, [...this.#context.keptChanges, ...this.#changes]) };
  }
}

/** Text that arrived before the window was full is an answer of its own, cut off by its length. */
function brokenOff(partial: AssistantMessage | null): AssistantMessage | null {
  return partial === null ? null : { ...partial, stopReason: "length" };
}

function actualOf({ input, output, cacheRead, cacheWrite }: CallUsage): CallActual {
  return [input, output, cacheRead, cacheWrite];
}
