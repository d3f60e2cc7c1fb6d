import { isFields, readUsage, type Fields } from "@throughline/core/internal";
import { recordsFromMessages } from "@throughline/history/gemini";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { MessageList, ReadElement } from "../message-list.ts";
import type { RecordBody } from "../unit-records.ts";

/** Reads events of Google's ADK. An event is a content of Gemini's API with an author and actions. */
export class AdkEvents implements Pick<MessageList, "element"> {
  element(event: Fields): ReadElement {
    const { content, author, id } = event;
    const parts = isFields(content) && Array.isArray(content["parts"]) ? (content["parts"] as readonly unknown[]) : [];
    // The ADK stores a summary beside the conversation, and other programs read the whole conversation.
    if (parts.length === 0 || event["isCompacted"] === true)
      return { bodies: [sideBody(event)], isUnreadable: false, id };
    // The agent asks for a confirmation with a call inside a content of the user, so the author decides and not the
    // content's role.
    const role = author === "user" || parts.some(isResponse) ? "user" : "model";
    const bodies = attempt(() => recordsFromMessages([{ role, parts }], authorOf(event)));
    if (bodies === null) return { bodies: [sideBody(event)], isUnreadable: true, id };
    const native = nativeOf(event);
    const made = bodies.map(({ message }): RecordBody => {
      const plain = plainMessage(message);
      return { type: "message", message: plain["role"] === "assistant" ? replyOf(plain, event) : plain, ...native };
    });
    return { bodies: made, isUnreadable: false, id };
  }
}

function isResponse(part: unknown): boolean {
  return isFields(part) && isFields(part["functionResponse"]);
}

/** The model gets no part of such an event. The record's source keeps the whole event. */
function sideBody({ isCompacted, actions }: Fields): RecordBody {
  const delta = isFields(actions) ? actions["stateDelta"] : null;
  const isState = isFields(delta) && Object.keys(delta).length > 0;
  const kind = isCompacted === true ? "compaction" : isState ? "state" : "event";
  return { type: "custom", customType: `adk.${kind}`, appendMode: "side" };
}

function authorOf({ modelVersion }: Fields): { readonly model?: string } {
  return typeof modelVersion === "string" && modelVersion !== "" ? { model: modelVersion } : {};
}

function replyOf(message: Fields, { author, usageMetadata, errorCode, errorMessage }: Fields): Fields {
  const usage = readUsage(usageMetadata);
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage ?? {};
  const counted = { input, output, cacheRead, cacheWrite, totalTokens: input + output + cacheRead + cacheWrite };
  const failed = typeof errorCode === "string" && errorCode !== "" && errorCode !== "STOP";
  return {
    ...message,
    ...(typeof author === "string" ? { name: author } : {}),
    ...(usage === null ? {} : { usage: counted }),
    ...(failed ? { stopReason: "error", errorMessage: `${errorCode} ${String(errorMessage ?? "")}`.trim() } : {}),
  };
}

/** Programs may query these fields. The other fields are in the record's source. */
function nativeOf({ author, branch, invocationId }: Fields): { readonly native?: Fields } {
  const stated = Object.entries({ author, branch, invocationId }).filter(([, value]) => typeof value === "string");
  return stated.length === 0 ? {} : { native: Object.fromEntries(stated) };
}
