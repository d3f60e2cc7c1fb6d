import type { IncomingMessage } from "node:http";
import { type Fields, isFields } from "@throughline/core/internal";
import type { WireApi } from "./wire/index.ts";
import { peekAnswer, type PeekedAnswer, unread } from "./peek-answer.ts";

/** Has the shape that `classifyOverflow` reads. */
export interface Refusal {
  readonly provider: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** Limits how much of an error is held back. A larger error passes without classification. */
const mostErrorBytes = 1024 * 1024;
/**
 * Limits how much of a stream is held back. The limit is high because the first event of the Responses API repeats the
 * instructions and tools.
 */
const mostHeldBytes = 4 * 1024 * 1024;

/**
 * Holds an answer back only until it is clear whether it is a refusal. A refusal is an error with its body, or a stream
 * whose first content is an error.
 */
export async function readRefusal(
  api: WireApi,
  provider: string,
  answer: IncomingMessage,
): Promise<{ readonly peeked: PeekedAnswer; readonly refusal: Refusal | null }> {
  const { statusCode: status = 0, headers } = answer;
  const none = { peeked: unread(answer), refusal: null };
  if (headers["content-encoding"] !== undefined && headers["content-encoding"] !== "identity") return none;
  const refusalOf = (body: unknown): Refusal => ({ provider, status, headers, body });
  if (status >= 400) {
    let bytes = 0;
    const peeked = await peekAnswer(answer, (chunk) => (bytes += chunk.length) > mostErrorBytes);
    const isRead = peeked.state === "ended";
    return { peeked, refusal: isRead ? refusalOf(parsed(Buffer.concat(peeked.chunks).toString("utf8"))) : null };
  }
  if (status !== 200) return none;
  const type = String(headers["content-type"] ?? "");
  const isEvents = /^text\/event-stream/i.test(type);
  // Only the Responses API reports a failure inside a complete answer with status 200.
  const isWhole = api === "openai-responses" && /^application\/json/i.test(type);
  if (!isEvents && !isWhole && !/^application\/x-ndjson/i.test(type)) return none;
  const reader = new FirstEvents(api, isEvents ? "events" : isWhole ? "whole" : "lines");
  let bytes = 0;
  const peeked = await peekAnswer(answer, (chunk) => {
    bytes += chunk.length;
    reader.take(chunk);
    return reader.isDecided || bytes > mostHeldBytes;
  });
  if (peeked.state === "ended") reader.end();
  return { peeked, refusal: reader.error === null ? null : refusalOf(reader.error) };
}

class FirstEvents {
  readonly #api: WireApi;
  readonly #form: "events" | "lines" | "whole";
  readonly #decoder = new TextDecoder();
  #text = "";
  isDecided = false;
  error: Fields | null = null;

  constructor(api: WireApi, form: "events" | "lines" | "whole") {
    this.#api = api;
    this.#form = form;
  }

  take(chunk: Buffer): void {
    const before = this.#text.length;
    const text = this.#decoder.decode(chunk, { stream: true });
    if (this.#form === "whole") return void (this.#text += text);
    // In an event stream a carriage return also ends a line. The extra empty lines are ignored.
    this.#text += text.replaceAll("\r", "\n");
    // Start at the new text, because the text before it has no line feed.
    let from = 0;
    for (let at = this.#text.indexOf("\n", before); at !== -1 && !this.isDecided; at = this.#text.indexOf("\n", from)) {
      this.#takeLine(this.#text.slice(from, at));
      from = at + 1;
    }
    this.#text = this.#text.slice(from);
  }

  end(): void {
    if (!this.isDecided) this.#takeLine(this.#text);
  }

  #takeLine(line: string): void {
    const isData = this.#form === "events" ? line.startsWith("data:") : line.trim() !== "";
    if (!isData) return;
    const event = parsed((this.#form === "events" ? line.slice("data:".length) : line).trim());
    const error = isFields(event) ? errorIn(this.#api, event) : null;
    if (error !== null) this.error = error;
    this.isDecided = error !== null || !isFields(event) || !isWithoutContent(this.#api, event);
  }
}

function errorIn(api: WireApi, event: Fields): Fields | null {
  const response = isFields(event["response"]) ? event["response"] : event;
  if (api === "openai-responses" && response["status"] === "failed" && isFields(response["error"]))
    return { error: response["error"] };
  // Ollama writes the error as a text, the other APIs as an object.
  if (event["error"] !== undefined && event["error"] !== null) return event;
  return event["type"] === "error" ? { error: event } : null;
}

/** Returns whether the event precedes all model output, so that the decision must wait for the next event. */
function isWithoutContent(api: WireApi, event: Fields): boolean {
  const { type } = event;
  switch (api) {
    case "anthropic-messages":
      return type === "message_start" || type === "ping";
    case "openai-responses":
      return type === "response.created" || type === "response.queued" || type === "response.in_progress";
    case "openai-completions":
      return Array.isArray(event["choices"]) && event["choices"].every(isEmptyChoice);
    case "ollama":
      return false;
  }
}

function isEmptyChoice(choice: unknown): boolean {
  if (!isFields(choice) || !isFields(choice["delta"]) || (choice["finish_reason"] ?? null) !== null) return false;
  return Object.entries(choice["delta"]).every(([name, value]) => name === "role" || value === "" || value === null);
}

/** Falls back to the text itself, because proxies answer with plain text or HTML. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
