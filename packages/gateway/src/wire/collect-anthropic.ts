import { type Fields, isFields, parsedFields } from "@throughline/core/internal";
import type { CollectedReply } from "./collected-reply.ts";
import { textOr } from "./json-fields.ts";
import type { StreamEvent } from "./read-events.ts";

interface OpenBlock {
  readonly start: Fields;
  text: string;
  thinking: string;
  signature: string;
  json: string;
  readonly citations: unknown[];
  /** Holds fields of the whole block that a delta states, such as the summary of a compaction. */
  stated: Fields;
}

export function collectAnthropic(events: readonly StreamEvent[]): CollectedReply {
  const reply = new AnthropicReply();
  for (const { data } of events) reply.take(data);
  return reply.end();
}

class AnthropicReply {
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #unknown: string[] = [];
  #message: Fields | null = null;
  #more: Fields = {};
  #usage: Fields = {};
  #isEnded = false;
  #error: string | null = null;

  take(data: string): void {
    const event = parsedFields(data);
    const index = Number(event?.["index"]);
    switch (event?.["type"]) {
      case "message_start":
        if (isFields(event["message"])) this.#message = event["message"];
        return this.#addUsage(this.#message?.["usage"]);
      case "content_block_start": {
        const start = isFields(event["content_block"]) ? event["content_block"] : {};
        this.#blocks.set(index, { start, text: "", thinking: "", signature: "", json: "", citations: [], stated: {} });
        return;
      }
      case "content_block_delta":
        return this.#addDelta(this.#blocks.get(index), event["delta"], data);
      case "message_delta":
        if (isFields(event["delta"])) this.#more = { ...this.#more, ...event["delta"] };
        return this.#addUsage(event["usage"]);
      case "message_stop":
        this.#isEnded = true;
        return;
      case "error":
        this.#error = data;
        return;
      case "content_block_stop":
      case "ping":
        return;
      default:
        this.#unknown.push(data);
    }
  }

  #addUsage(usage: unknown): void {
    if (!isFields(usage)) return;
    const known = Object.entries(usage).filter(([, value]) => value !== null);
    this.#usage = { ...this.#usage, ...Object.fromEntries(known) };
  }

  #addDelta(block: OpenBlock | undefined, delta: unknown, data: string): void {
    if (block === undefined || !isFields(delta)) return void this.#unknown.push(data);
    switch (delta["type"]) {
      case "text_delta":
        block.text += textOr(delta["text"], "");
        return;
      case "thinking_delta":
        block.thinking += textOr(delta["thinking"], "");
        return;
      case "signature_delta":
        block.signature += textOr(delta["signature"], "");
        return;
      case "input_json_delta":
        block.json += textOr(delta["partial_json"], "");
        return;
      case "compaction_delta": {
        const { type: _type, ...stated } = delta;
        block.stated = { ...block.stated, ...stated };
        return;
      }
      case "citations_delta":
        block.citations.push(delta["citation"]);
        return;
      default:
        this.#unknown.push(data);
    }
  }

  end(): CollectedReply {
    const blocks = [...this.#blocks].toSorted(([one], [other]) => one - other).map(([, block]) => blockOf(block));
    const usage = { usage: this.#usage };
    const reply = this.#message === null ? null : { ...this.#message, ...this.#more, ...usage, content: blocks };
    return { reply, isEnded: this.#isEnded, error: this.#error, unknown: this.#unknown };
  }
}

function blockOf({ start, text, thinking, signature, json, citations, stated }: OpenBlock): Fields {
  const cited = citations.length === 0 ? {} : { citations };
  switch (start["type"]) {
    case "text":
      return { ...start, text: textOr(start["text"], "") + text, ...cited };
    case "thinking":
      return {
        ...start,
        thinking: textOr(start["thinking"], "") + thinking,
        signature: textOr(start["signature"], "") + signature,
      };
    case "compaction":
      return { ...start, ...stated };
    default:
      // A call that ended early keeps the text of its incomplete arguments.
      return json === "" ? start : { ...start, input: parsedFields(json) ?? json };
  }
}
