import { isFields, type Fields } from "@throughline/core/internal";
import { recordsFromMessages } from "@throughline/history/anthropic";
import { blockBodies, type ReplyAuthor } from "../block-messages.ts";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";
import { stepsOf, type UiStep } from "./ui-parts.ts";

const knownFields: ReadonlySet<string> = new Set([
  "id",
  "role",
  "parts",
  "content",
  "createdAt",
  "toolInvocations",
  "reasoning",
  "experimental_attachments",
]);

/** Reads the messages that a program stores for its user interface. */
export class UiMessages implements MessageList {
  readonly name = "ai-sdk";
  sessionId: string | null = null;
  readonly #entry = new Map<string, unknown>();

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  frame({ id, title, createdAt }: Fields): ReadFrame {
    if (typeof id === "string" && id !== "") this.sessionId ??= id;
    if (typeof title === "string" && title.trim() !== "") {
      this.#entry.set("title", title.trim());
      this.#entry.set("titleBy", "import");
    }
    return { bodies: [], time: createdAt };
  }

  element(value: Fields): ReadElement {
    const { id, role, metadata } = value;
    const stated = isFields(metadata) ? metadata : {};
    const time = value["createdAt"] ?? stated["createdAt"];
    const bodies = role === "assistant" ? replyBodies(value, stated) : toldBodies(value);
    const native = fieldsWithout(value, knownFields);
    const [first, ...others] = bodies ?? [];
    const more = Object.keys(native).length === 0 ? {} : { native };
    const read = first === undefined ? [] : [{ ...first, ...more }, ...others];
    return { bodies: read, isUnreadable: bodies === null && role !== undefined, id, time };
  }
}

/** The function reads messages of a person and instructions. Null means that the value cannot be read. */
export function toldBodies(value: Fields): readonly RecordBody[] | null {
  const { role } = value;
  if (role !== "user" && role !== "system" && role !== "developer") return null;
  const blocks = stepsOf(value).flatMap(({ said }) => said);
  const content = blocks.length === 0 ? "" : blocks;
  const given = { role: role === "user" ? "user" : "system", content };
  return attempt(() => recordsFromMessages([given]))?.map(({ message }) => bodyOf(plainMessage(message))) ?? null;
}

/** Each step gives the model's content and the results of its tool calls. Null means that one step cannot be read. */
export function replyBodies(value: Fields, metadata: Fields): readonly RecordBody[] | null {
  const read = stepsOf(value).map((step) => stepBodies(step, metadata));
  return read.includes(null) ? null : read.flatMap((bodies) => bodies ?? []);
}

function stepBodies({ said, results, isSigned }: UiStep, author: ReplyAuthor): readonly RecordBody[] | null {
  const given = [
    ...(said.length === 0 ? [] : [{ role: "assistant", content: said }]),
    ...(results.length === 0 ? [] : [{ role: "user", content: results }]),
  ];
  return blockBodies(given, author, isSigned);
}

function bodyOf(message: Fields): RecordBody {
  return { type: "message", message };
}
