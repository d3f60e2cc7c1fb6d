import { recordUsage, isFields, type Fields } from "@throughline/core/internal";
import { recordFromReply, recordsFromMessages } from "@throughline/history/openai";
import type { UnitPlace } from "../foreign-format.ts";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";

const knownFields: ReadonlySet<string> = new Set([
  "role",
  "content",
  "tool_calls",
  "tool_call_id",
  "refusal",
  "audio",
  "reasoning_content",
  "reasoning",
  "function_call",
]);

/** Reads the messages of a chat or of a request, or the choices of an answer. */
export class OpenAiMessages implements MessageList {
  readonly name = "openai";
  sessionId: string | null = null;
  readonly entry = {};
  #model: string | null = null;
  /** The usage belongs to an answer whose choices are the list. */
  #usage: unknown = undefined;
  #hasChoices = false;
  /** Older calls have no ids, so a result is matched to an open call by its name. */
  readonly #openCalls: { readonly id: string; readonly name: unknown }[] = [];

  frame(fields: Fields, part: "head" | "tail"): ReadFrame {
    const around = [fields, fields["body"], fields["request"], fields["input"]].filter(isFields);
    for (const { model, custom_id: id } of around) {
      if (typeof model === "string" && model !== "") this.#model ??= model;
      if (typeof id === "string" && id !== "") this.sessionId ??= id;
    }
    this.#usage ??= fields["usage"];
    const counted = part === "tail" && this.#hasChoices ? this.#usageRecord() : [];
    return { bodies: [...this.#answerIn(fields), ...counted], time: fields["created"] ?? fields["created_at"] };
  }

  element(value: Fields, place: UnitPlace): ReadElement {
    const time = value["created_at"] ?? value["timestamp"];
    if (isFields(value["message"]) && value["role"] === undefined) {
      this.#hasChoices = true;
      // A request may ask for several answers; only the first one is part of the conversation.
      const body = (value["index"] ?? 0) === 0 ? this.#reply({ choices: [value] }, place.line) : null;
      return { bodies: body === null ? [] : [body], isUnreadable: body === null && (value["index"] ?? 0) === 0, time };
    }
    const bodies = this.#message(value, place.line);
    return { bodies: bodies ?? [], isUnreadable: bodies === null && value["role"] !== undefined, time };
  }

  #usageRecord(): readonly RecordBody[] {
    const usage = recordUsage(this.#usage, null);
    const author = { provider: "openai", ...(this.#model === null ? {} : { model: this.#model }) };
    return usage === null ? [] : [{ type: "usage", kind: "openai.call", usage, ...author }];
  }

  #message(value: Fields, line: number): readonly RecordBody[] | null {
    const given = this.#withIds(value, line);
    const author = this.#model === null ? {} : { model: this.#model };
    const drafts = attempt(() => recordsFromMessages([given], author));
    if (drafts === null) return null;
    const { role } = value;
    const native = fieldsWithout(value, role === "user" ? new Set([...knownFields, "name"]) : knownFields);
    const more = Object.keys(native).length === 0 ? {} : { native };
    return drafts.map(({ message }, index) => ({
      type: "message",
      ...(index === 0 ? more : {}),
      message: plainMessage(message),
    }));
  }

  /** Missing ids are derived from the line, so that every read gives the same ids. */
  #withIds(value: Fields, line: number): Fields {
    const { role, tool_calls: listed, function_call: single, name, ...rest } = value;
    if (role === "function") {
      const at = this.#openCalls.findIndex((call) => call.name === name);
      const [call] = at < 0 ? [] : this.#openCalls.splice(at, 1);
      return { ...rest, role: "tool", tool_call_id: call?.id ?? `call_${line}` };
    }
    if (Array.isArray(listed)) {
      const calls = (listed as readonly unknown[]).map((call, index) =>
        isFields(call) && call["id"] === undefined ? { ...call, id: `call_${line}_${index + 1}` } : call,
      );
      return { ...value, tool_calls: calls };
    }
    if (!isFields(single)) return value;
    const id = `call_${line}`;
    this.#openCalls.push({ id, name: single["name"] });
    return { ...rest, role, tool_calls: [{ id, type: "function", function: single }] };
  }

  /** The answer stands beside the request. Data for preference training has the preferred answer there. */
  #answerIn(fields: Fields): readonly RecordBody[] {
    const { preferred_output: preferred, response } = fields;
    if (Array.isArray(preferred)) return preferred.filter(isFields).flatMap((one) => this.#message(one, 0) ?? []);
    const inner = isFields(response) ? response : fields;
    const answer = isFields(inner["body"]) && Array.isArray(inner["body"]["choices"]) ? inner["body"] : inner;
    if (!Array.isArray(answer["choices"]) || answer["choices"].length === 0) return [];
    const body = this.#reply(answer, 0);
    return body === null ? [] : [body];
  }

  #reply(answer: Fields, line: number): RecordBody | null {
    const author = this.#model === null || answer["model"] !== undefined ? {} : { model: this.#model };
    let count = 0;
    const nextCallId = (): string => `call_${line}_${(count += 1)}`;
    const draft = attempt(() => recordFromReply(answer, { ...author, nextCallId }));
    return draft === null ? null : { type: "message", message: plainMessage(draft.message) };
  }
}
