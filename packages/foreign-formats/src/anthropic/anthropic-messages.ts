import { recordUsage, isFields, type Fields } from "@throughline/core/internal";
import { recordFromReply, recordsFromMessages } from "@throughline/history/anthropic";
import type { UnitPlace } from "../foreign-format.ts";
import { attempt, partOf, plainMessage } from "../mapped-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";

const knownFields: ReadonlySet<string> = new Set(["role", "content"]);

/** Reads the messages of a conversation or of a request, or the blocks of an answer. */
export class AnthropicMessages implements MessageList {
  readonly name = "anthropic";
  sessionId: string | null = null;
  readonly entry = {};
  #model: string | null = null;
  /** The id is set when the list holds the blocks of an answer; null for a list of messages. */
  #replyId: string | null = null;
  #usage: unknown = undefined;

  frame(fields: Fields, part: "head" | "tail"): ReadFrame {
    const { result } = fields;
    const answer = isFields(result) ? result["message"] : null;
    const around = [fields, fields["params"], fields["body"], fields["request"], answer].filter(isFields);
    for (const { model, custom_id: id, usage } of around) {
      if (typeof model === "string" && model !== "") this.#model ??= model;
      if (typeof id === "string" && id !== "") this.sessionId ??= id;
      this.#usage ??= usage;
    }
    return { bodies: [...this.#answerIn(fields), ...(part === "tail" ? this.#usageRecord() : [])] };
  }

  element(value: Fields, place: UnitPlace): ReadElement {
    const { role, type } = value;
    if (role === undefined && typeof type === "string") return this.#block(value, place);
    const drafts = attempt(() => recordsFromMessages([value], this.#author));
    if (drafts === null) return { bodies: [], isUnreadable: role !== undefined };
    const native = fieldsWithout(value, knownFields);
    const more = Object.keys(native).length === 0 ? {} : { native };
    const bodies = drafts.map(({ message }, index) => ({
      type: "message",
      ...(index === 0 ? more : {}),
      message: plainMessage(message),
    }));
    return { bodies, isUnreadable: false, time: value["timestamp"] ?? value["created_at"] };
  }

  get #author(): { readonly model?: string } {
    return this.#model === null ? {} : { model: this.#model };
  }

  /** All blocks of an answer belong to one reply, so later blocks become its further parts. */
  #block(block: Fields, { line }: UnitPlace): ReadElement {
    const drafts = attempt(() => recordsFromMessages([{ role: "assistant", content: [block] }], this.#author));
    const [draft] = drafts ?? [];
    if (draft === undefined) return { bodies: [], isUnreadable: true };
    const isFurtherPart = this.#replyId !== null;
    this.#replyId ??= `reply-${line}`;
    const body = { type: "message", message: plainMessage(draft.message) };
    return { bodies: [partOf(body, this.#replyId, isFurtherPart)], isUnreadable: false };
  }

  #usageRecord(): readonly RecordBody[] {
    const usage = this.#replyId === null ? null : recordUsage(this.#usage, null);
    return usage === null
      ? []
      : [{ type: "usage", kind: "anthropic.call", usage, provider: "anthropic", ...this.#author }];
  }

  /** A log of requests may hold the answer beside the request. */
  #answerIn({ response }: Fields): readonly RecordBody[] {
    if (!isFields(response) || !Array.isArray(response["content"])) return [];
    const draft = attempt(() => recordFromReply(response, {}));
    return draft === null ? [] : [{ type: "message", message: plainMessage(draft.message) }];
  }
}
