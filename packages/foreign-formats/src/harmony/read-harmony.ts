import type { Fields, RecordSource } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { recordsFromMessages } from "@throughline/history/openai";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { attempt, partOf, plainMessage } from "../mapped-messages.ts";
import { UnitRecords, type RecordBody } from "../unit-records.ts";
import { areTokens, readMarked, type MarkedMessage } from "./harmony-marks.ts";
import { toolOf } from "./tool-names.ts";
import { wordsOfInstructions } from "./instructions.ts";

export function createHarmonyReader(options: ForeignReaderOptions): ForeignReader {
  return new HarmonyReader(options);
}

interface OpenCall {
  readonly id: string;
  readonly tool: string;
}

/** No model waits for more results at once, so older calls are dropped. */
const mostOpenCalls = 256;

interface HarmonyState {
  readonly headId: string | null;
  readonly openCalls: readonly OpenCall[];
  /** The id is that of the first record of the current reply; null between replies. */
  readonly replyId: string | null;
}

class HarmonyReader implements ForeignReader {
  readonly sessionId = null;
  readonly spawnedBy = null;
  readonly entry: Readonly<Record<string, unknown>> = {};
  readonly #records: UnitRecords;
  readonly #maxUnitBytes: number;
  #state: HarmonyState = { headId: null, openCalls: [], replyId: null };
  /**
   * An import may read the beginning of an item, and later the grown item at the same line. The second read restores
   * the state from before the first.
   */
  #last: { readonly line: number; readonly state: HarmonyState } = { line: 0, state: this.#state };
  /** Token numbers cannot be decoded without the model's vocabulary. */
  #isOfTokens: boolean | null = null;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("harmony", options);
    this.#maxUnitBytes = options.maxUnitBytes ?? Infinity;
  }

  get headId(): string | null {
    return this.#state.headId;
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    if (this.#last.line === place.line) this.#state = this.#last.state;
    this.#last = { line: place.line, state: this.#state };
    const { headId } = this.#state;
    if ((place.sizeBytes ?? unit.length) > this.#maxUnitBytes) return this.#records.unparsed("too-long", place, headId);
    const text = typeof unit === "string" ? unit : new TextDecoder().decode(unit);
    const at = { id: this.#records.claim(undefined, place), timestamp: this.#records.timestamp(undefined) };
    this.#isOfTokens ??= areTokens(text);
    if (this.#isOfTokens) return this.#records.side("tokens", {}, { ...at, parentId: headId });
    const message = readMarked(text);
    const body = message === null ? null : this.#body(message, at.id, place);
    if (body === null) {
      const isPrompt = message !== null && message.text === null;
      return this.#records.side(isPrompt ? "prompt" : "unknown", { text }, { ...at, parentId: headId });
    }
    const opened = this.#records.open({ ...at, headId });
    opened.add(body);
    this.#state = { ...this.#state, headId: opened.headId };
    return opened.close();
  }

  finish(): readonly Finding[] {
    const message = "The file holds numbers of tokens instead of text: it is kept, and none of its messages is read.";
    if (this.#isOfTokens === true) this.#records.log.add("SOURCE_UNREAD", message, {});
    this.#records.log.finish();
    return this.findings;
  }

  /** Null means that the item has no message of the conversation. */
  #body(message: MarkedMessage, id: string, { line }: UnitPlace): RecordBody | null {
    const { role, name, text } = message;
    if (text === null) return null;
    if (role === "assistant") return this.#reply(message, text, id, line);
    this.#state = { ...this.#state, replyId: null };
    if (role === null) return this.#result(message, name ?? "", text, line);
    if (role === "user") this.#state = { ...this.#state, openCalls: [] };
    const content = role === "developer" ? wordsOfInstructions(text) : text;
    return this.#mapped([{ role, content }], { ...nativeOf(message), ...(role === "developer" ? { role } : {}) });
  }

  #reply(message: MarkedMessage, text: string, id: string, line: number): RecordBody | null {
    const { recipient, channel, contentType, stop } = message;
    const native = nativeOf(message);
    const isCall = recipient !== null && !["assistant", "user", "all"].includes(recipient);
    let body: RecordBody | null;
    if (isCall) {
      const isText = contentType !== null && !contentType.endsWith("json") && !isObject(text);
      // The model never completed a call that was cut off, so no tool ran.
      if (stop === null && !isText && !isObject(text)) return null;
      const tool = toolOf(recipient);
      const callId = `call_${line}`;
      this.#state = {
        ...this.#state,
        openCalls: [...this.#state.openCalls.slice(1 - mostOpenCalls), { id: callId, tool }],
      };
      const called = { name: tool, arguments: isText ? JSON.stringify({ input: text }) : text };
      body = this.#mapped(
        [{ role: "assistant", content: null, tool_calls: [{ id: callId, type: "function", function: called }] }],
        native,
      );
    } else if (channel === "analysis") {
      const content = [{ type: "thinking", thinking: text }];
      body = { type: "message", native, message: { role: "assistant", content } };
    } else {
      body = this.#mapped([{ role: "assistant", content: text }], native, channel === "final");
    }
    if (body === null) return null;
    const { replyId } = this.#state;
    const joined = partOf(body, replyId ?? id, replyId !== null);
    // Text in the final channel, which the person reads, ends a reply.
    this.#state = { ...this.#state, replyId: channel === "final" ? null : (replyId ?? id) };
    return joined;
  }

  /** A result names only its tool, so it answers the oldest open call of that tool. */
  #result(message: MarkedMessage, author: string, text: string, line: number): RecordBody | null {
    const tool = toolOf(author);
    const { openCalls } = this.#state;
    const call = openCalls.find((one) => one.tool === tool) ?? openCalls[0];
    this.#state = { ...this.#state, openCalls: openCalls.filter((one) => one !== call) };
    const body = this.#mapped(
      [{ role: "tool", tool_call_id: call?.id ?? `call_${line}`, content: text }],
      nativeOf(message),
    );
    if (body === null) return null;
    return { ...body, message: { ...(body["message"] as Fields), toolName: tool } };
  }

  #mapped(messages: readonly Fields[], native: Fields, isEnd: boolean = true): RecordBody | null {
    const [draft] = attempt(() => recordsFromMessages(messages)) ?? [];
    if (draft === undefined) return null;
    // A rendered conversation does not state which model wrote the replies.
    const { api: _api, provider: _provider, stopReason, ...message } = plainMessage(draft.message);
    const ended = stopReason !== undefined && (isEnd || stopReason !== "stop") ? { stopReason } : {};
    const more = Object.keys(native).length === 0 ? {} : { native };
    return { type: "message", ...more, message: { ...message, ...ended } };
  }
}

function nativeOf({ role, name, recipient, channel, contentType }: MarkedMessage): Fields {
  const stated = { name: role === null ? null : name, recipient, channel, contentType };
  return Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== null));
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
