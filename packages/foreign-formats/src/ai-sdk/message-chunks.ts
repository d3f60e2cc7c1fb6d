import { isFields, type Fields } from "@throughline/core/internal";

/** Holds one piece of a streamed message: `UIMessageChunk` of the SDK. */
export type MessageChunk = Fields & {
  /** Names the chunk in the SDK's terms: `start`, `text-delta`, `tool-input-available`, … */
  readonly type: string;
};

/** Builds the chunks of a message. Each call returns the chunks for the parts that were added since the last call. */
export class MessageChunks {
  #id: unknown = null;
  /**
   * For each part, the array holds the text or the JSON that was sent, so that the next chunk holds only the
   * difference.
   */
  #given: string[] = [];
  #open: { readonly type: string; readonly id: string } | null = null;
  #isInStep = false;

  /**
   * Yields the chunks for the content that the message gained since the last call. A message with another id yields
   * none.
   */
  *take(message: Fields): Generator<MessageChunk> {
    if (message["id"] !== this.#id) {
      if (this.#id !== null) return;
      this.#id = message["id"];
      const metadata = message["metadata"] === undefined ? {} : { messageMetadata: message["metadata"] };
      yield { type: "start", messageId: this.#id, ...metadata };
    }
    const parts = Array.isArray(message["parts"]) ? (message["parts"] as readonly Fields[]).filter(isFields) : [];
    for (const [at, part] of parts.entries()) yield* this.#part(part, at);
  }

  /** Yields the chunks that close the open part, the step and the message. Yields none before the first `take`. */
  *end(): Generator<MessageChunk> {
    if (this.#id === null) return;
    yield* this.#close();
    if (this.#isInStep) yield { type: "finish-step" };
    yield { type: "finish" };
  }

  *#part(part: Fields, at: number): Generator<MessageChunk> {
    const { type } = part;
    const before = this.#given[at];
    if (type === "text" || type === "reasoning") {
      const text = typeof part["text"] === "string" ? part["text"] : "";
      const id = `${type}-${at}`;
      if (before === undefined) {
        yield* this.#close();
        this.#open = { type, id };
        yield { type: `${type}-start`, id };
      }
      // Chunks cannot retract text that was sent. When earlier text changes, the client gets the whole text with the
      // next load.
      const more = text.startsWith(before ?? "") ? text.slice((before ?? "").length) : "";
      if (more !== "") yield { type: `${type}-delta`, id, delta: more };
      this.#given[at] = text;
      return;
    }
    const state = JSON.stringify(part);
    if (state === before) return;
    this.#given[at] = state;
    yield* this.#close();
    if (type === "step-start") {
      if (this.#isInStep) yield { type: "finish-step" };
      this.#isInStep = true;
      yield { type: "start-step" };
    } else if (type === "dynamic-tool" || (typeof type === "string" && type.startsWith("tool-")))
      yield* toolChunks(part, before);
    else yield part as MessageChunk;
  }

  *#close(): Generator<MessageChunk> {
    if (this.#open !== null) yield { type: `${this.#open.type}-end`, id: this.#open.id };
    this.#open = null;
  }
}

function* toolChunks(part: Fields, before: string | undefined): Generator<MessageChunk> {
  const { type, toolCallId, state, input, output, errorText, approval } = part;
  const isDynamic = type === "dynamic-tool";
  const toolName = isDynamic ? part["toolName"] : String(type).slice("tool-".length);
  const call = { toolCallId, ...(isDynamic ? { dynamic: true } : {}) };
  const had = before === undefined ? {} : (JSON.parse(before) as Fields);
  if (state !== "input-streaming" && (had["state"] === undefined || had["state"] === "input-streaming"))
    yield { type: "tool-input-available", ...call, toolName, input: input ?? null };
  if (state === "approval-requested" && isFields(approval))
    yield { type: "tool-approval-request", toolCallId, approvalId: approval["id"] };
  if (state === "output-available") yield { type: "tool-output-available", ...call, output: output ?? null };
  if (state === "output-error") yield { type: "tool-output-error", ...call, errorText };
  if (state === "output-denied") yield { type: "tool-output-denied", toolCallId };
}
