import type { SessionRef, StoredRecord } from "@throughline/core";
import { isFields, readUsage, throughlineKind, type Fields } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { finishReason, names, providerName } from "./attribute-names.ts";
import { blocksOf, inputMessages, outputMessages, resultText } from "./message-content.ts";
import type { Attributes, AttributeValue, SessionSpan, SpanStep } from "./session-span.ts";

interface OpenTurn {
  readonly id: string;
  /** Is true when turn records mark the start and the end. */
  readonly isMarked: boolean;
  readonly startMs: number;
}

/** Holds a reply until its call record follows, which has the exact facts of the call. */
interface Reply {
  readonly stored: StoredRecord;
  message: Fields;
  endMs: number;
  readonly startMs: number;
}

interface OpenTool {
  readonly turnId: string;
  readonly name: string;
  readonly startMs: number;
  readonly arguments: unknown;
}

/**
 * Builds spans from the records of a session. A turn becomes `invoke_agent`, a model call `chat`, a tool call
 * `execute_tool`. Without turn and call records, each user message starts a turn and each reply is a call.
 */
export class SpanBuilder {
  readonly #conversation: Attributes;
  readonly #agentId: string;
  readonly #hasContent: boolean;
  /** Filled only when content is requested, because the records of a session may need much memory. */
  readonly #records: StoredRecord[] = [];
  #turn: OpenTurn | null = null;
  #reply: Reply | null = null;
  readonly #tools = new Map<string, OpenTool>();
  /** Holds the times of the last records by seq, because a call starts at the time of the last record that it sent. */
  readonly #times = new Map<number, number>();
  /** Holds the start and end times of exchanges, which are more exact than the times of records. */
  readonly #exchanges = new Map<string, readonly [number, number]>();
  #lastMs = 0;

  constructor({ key, agentId }: SessionRef, { hasContent }: { readonly hasContent: boolean }) {
    this.#agentId = agentId;
    this.#hasContent = hasContent;
    this.#conversation = { [names.conversation]: key };
  }

  *take(stored: StoredRecord): Generator<SpanStep> {
    const { record, seq, side, tsMs, storedAtMs } = stored;
    // A clock may be set back, but the times of spans must not decrease.
    const atMs = Math.max(this.#lastMs, tsMs ?? storedAtMs ?? this.#lastMs);
    if (this.#hasContent) this.#records.push(stored);
    const kind = throughlineKind(record);
    if (kind === "turn") yield* this.#mark(record["data"], atMs);
    else if (kind === "call") yield* this.#call(record["data"], stored, atMs);
    else if (kind === "exchange") this.#exchange(stored);
    else if (!side && record.type === "message" && isFields(record["message"]))
      yield* this.#message(record["message"], stored, atMs);
    this.#lastMs = atMs;
    this.#times.set(seq, atMs);
    if (this.#times.size > mostTimes) this.#times.delete(this.#times.keys().next().value as number);
  }

  /** Ends the spans that the session left open. */
  *finish(): Generator<SpanStep> {
    yield* this.#endTurn(this.#lastMs, null);
  }

  *#mark(data: unknown, atMs: number): Generator<SpanStep> {
    if (!isFields(data) || typeof data["turnId"] !== "string") return;
    const { turnId, state, error } = data;
    if (state === "open") {
      yield* this.#endTurn(this.#lastMs, null);
      yield* this.#beginTurn(turnId, true, atMs);
    } else if (this.#turn?.id === turnId) {
      const code = isFields(error) && typeof error["code"] === "string" ? error["code"] : String(state);
      yield* this.#endTurn(atMs, state === "done" ? null : code);
    }
  }

  *#beginTurn(id: string, isMarked: boolean, startMs: number): Generator<SpanStep> {
    this.#turn = { id, isMarked, startMs };
    yield { what: "begin", turn: { id, turnId: id, startMs, ...this.#turnNames() } };
  }

  #turnNames(): Pick<SessionSpan, "name" | "attributes"> {
    const attributes = { [names.operation]: "invoke_agent", [names.agent]: this.#agentId, ...this.#conversation };
    return { name: `invoke_agent ${this.#agentId}`, attributes };
  }

  *#endTurn(endMs: number, error: string | null): Generator<SpanStep> {
    yield* this.#endReply();
    const turn = this.#turn;
    if (turn === null) return;
    const { id, startMs } = turn;
    this.#turn = null;
    const span = { id, turnId: id, kind: "turn" as const, startMs, endMs, content: {}, error, ...this.#turnNames() };
    yield { what: "end", span };
  }

  *#message(message: Fields, stored: StoredRecord, atMs: number): Generator<SpanStep> {
    const { role } = message;
    const isFragment = role === "assistant" && message["fragment"] === true;
    if (isFragment && this.#reply !== null && message["responseId"] === this.#reply.message["responseId"]) {
      const content = [...blocksOf(this.#reply.message["content"]), ...blocksOf(message["content"])];
      this.#reply.message = { ...this.#reply.message, ...message, content };
      this.#reply.endMs = atMs;
      this.#openTools(message, atMs);
      return;
    }
    yield* this.#endReply();
    if (role === "user" && this.#turn?.isMarked !== true) {
      yield* this.#endTurn(this.#lastMs, null);
      yield* this.#beginTurn(`turn-${stored.id}`, false, atMs);
    }
    if (this.#turn === null) yield* this.#beginTurn(`turn-${stored.id}`, false, atMs);
    if (role === "assistant") {
      this.#reply = { stored, message, startMs: this.#turn === null ? atMs : this.#lastMs || atMs, endMs: atMs };
      this.#openTools(message, atMs);
    } else if (role === "toolResult") yield* this.#toolResult(message, stored, atMs);
  }

  #openTools({ content }: Fields, startMs: number): void {
    const turnId = this.#turn?.id ?? "";
    for (const { type, id, name, arguments: given } of blocksOf(content))
      if (type === "toolCall") this.#tools.set(String(id), { turnId, name: String(name), startMs, arguments: given });
    if (this.#tools.size > mostTools) this.#tools.delete(this.#tools.keys().next().value as string);
  }

  *#toolResult(message: Fields, { id }: StoredRecord, endMs: number): Generator<SpanStep> {
    const callId = String(message["toolCallId"]);
    const tool = this.#tools.get(callId);
    if (tool === undefined) return;
    this.#tools.delete(callId);
    const error = message["isError"] === true ? "tool_error" : null;
    const attributes = {
      [names.operation]: "execute_tool",
      [names.toolName]: tool.name,
      [names.toolCallId]: callId,
      [names.toolType]: "function",
      ...this.#conversation,
    };
    const content: Attributes = this.#hasContent
      ? { [names.toolArguments]: JSON.stringify(tool.arguments ?? {}), [names.toolResult]: resultText(message) }
      : {};
    const { startMs, turnId } = tool;
    const name = `execute_tool ${tool.name}`;
    yield {
      what: "end",
      span: { id, turnId, kind: "tool", name, startMs, endMs, attributes, content, error },
    };
  }

  /** Creates the span of a reply without a call record, as other programs write it. */
  *#endReply(): Generator<SpanStep> {
    const reply = this.#reply;
    const turn = this.#turn;
    this.#reply = null;
    if (reply === null || turn === null) return;
    const { message, stored, startMs, endMs } = reply;
    const { provider, model, stopReason } = message;
    const facts = { provider: String(provider ?? "unknown"), model: String(model ?? "unknown") };
    const isFailed = stopReason === "error" || stopReason === "aborted";
    const given = { ...facts, maxTokens: null, error: isFailed ? String(stopReason) : null };
    yield this.#chat(stored.id, turn.id, { ...given, startMs, endMs, message, usage: usageOf(message["usage"]) }, () =>
      this.#sent(stored.seq - 1, stored.parentId),
    );
  }

  *#call(data: unknown, stored: StoredRecord, atMs: number): Generator<SpanStep> {
    if (!isFields(data) || data["part"] === 2 || typeof data["turnId"] !== "string") return;
    const { turnId, provider, model, toSeq, headId, outcome, actual, maxOutput, exchangeId } = data;
    if (typeof provider !== "string" || typeof model !== "string" || typeof toSeq !== "number") return;
    const reply = this.#reply !== null && this.#reply.stored.seq > toSeq ? this.#reply : null;
    if (reply === null) yield* this.#endReply();
    this.#reply = null;
    if (this.#turn === null) yield* this.#beginTurn(turnId, false, this.#times.get(toSeq) ?? atMs);
    const exchange = this.#exchanges.get(String(exchangeId));
    const startMs = exchange?.[0] ?? this.#times.get(toSeq) ?? reply?.startMs ?? atMs;
    const call = {
      provider,
      model,
      maxTokens: typeof maxOutput === "number" ? maxOutput : null,
      error: outcome === "answered" ? null : String(outcome),
      startMs,
      endMs: Math.max(startMs, exchange?.[1] ?? reply?.endMs ?? atMs),
      message: reply?.message ?? null,
      usage: actualUsage(actual) ?? usageOf(reply?.message["usage"]),
    };
    yield this.#chat(stored.id, this.#turn?.id ?? turnId, call, () =>
      this.#sent(toSeq, typeof headId === "string" ? headId : null),
    );
  }

  #exchange({ id, record }: StoredRecord): void {
    const { startedMs, endedMs } = isFields(record["data"]) ? record["data"] : {};
    if (typeof startedMs !== "number" || typeof endedMs !== "number") return;
    this.#exchanges.clear();
    this.#exchanges.set(id, [startedMs, endedMs]);
  }

  #chat(
    id: string,
    turnId: string,
    call: {
      readonly provider: string;
      readonly model: string;
      readonly maxTokens: number | null;
      readonly error: string | null;
      readonly startMs: number;
      readonly endMs: number;
      readonly message: Fields | null;
      readonly usage: Attributes;
    },
    sent: () => string,
  ): SpanStep {
    const { provider, model, maxTokens, error, startMs, endMs, message, usage } = call;
    const reason = finishReason(message?.["stopReason"]);
    const responseModel = message?.["responseModel"] ?? message?.["model"];
    const attributes: Record<string, AttributeValue> = {
      [names.operation]: "chat",
      [names.provider]: providerName(provider),
      [names.requestModel]: model,
      ...this.#conversation,
      ...(maxTokens === null ? {} : { [names.maxTokens]: maxTokens }),
      ...(typeof message?.["responseId"] === "string" ? { [names.responseId]: message["responseId"] } : {}),
      ...(typeof responseModel === "string" ? { [names.responseModel]: responseModel } : {}),
      ...(reason === null ? {} : { [names.finishReasons]: [reason] }),
      ...usage,
    };
    const content: Attributes = this.#hasContent
      ? {
          [names.inputMessages]: sent(),
          ...(message === null ? {} : { [names.outputMessages]: outputMessages(message) }),
        }
      : {};
    const name = `chat ${model}`;
    return { what: "end", span: { id, turnId, kind: "chat", name, startMs, endMs, attributes, content, error } };
  }

  /**
   * Rebuilds the messages of a call from the records. The result lacks the changes that the guard made to the request.
   */
  #sent(toSeq: number, headId: string | null): string {
    const seen = this.#records.filter(({ seq }) => seq <= toSeq);
    return inputMessages(buildContext(seen, { headId }).messages);
  }
}

/** Limits the open tool calls, because a program may store a tool's result turns later or never. */
const mostTools = 1000;

/**
 * Limits the remembered record times. A call that sent an older record starts at the time of its reply or of its own
 * record.
 */
const mostTimes = 10_000;

/** The conventions include cached tokens in the input, while records count them separately. */
function usageAttributes(input: number, output: number, cacheRead: number, cacheWrite: number): Attributes {
  return {
    [names.inputTokens]: input + cacheRead + cacheWrite,
    [names.outputTokens]: output,
    ...(cacheRead === 0 ? {} : { [names.cacheReadTokens]: cacheRead }),
    ...(cacheWrite === 0 ? {} : { [names.cacheWriteTokens]: cacheWrite }),
  };
}

function usageOf(given: unknown): Attributes {
  const usage = readUsage(given);
  return usage === null ? {} : usageAttributes(usage.input, usage.output, usage.cacheRead, usage.cacheWrite);
}

function actualUsage(actual: unknown): Attributes | null {
  if (!Array.isArray(actual) || !actual.every((count) => typeof count === "number")) return null;
  const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = actual as readonly number[];
  return usageAttributes(input, output, cacheRead, cacheWrite);
}
