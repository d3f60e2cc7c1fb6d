import type { Fields } from "@throughline/core/internal";
import { asText } from "./as-text.ts";
import { hasErrorCode } from "@throughline/core";
import type { RecordBody } from "./unit-records.ts";

/** Null means that the mapping refused the input with INPUT_INVALID. */
export function attempt<Read>(read: () => Read): Read | null {
  try {
    return read();
  } catch (error) {
    if (hasErrorCode(error, "INPUT_INVALID")) return null;
    throw error;
  }
}

export function callsOf(content: unknown): readonly { readonly id: string; readonly name: string }[] {
  if (!Array.isArray(content)) return [];
  return (content as readonly Fields[]).flatMap(({ type, id, name }) =>
    type === "toolCall" ? [{ id: asText(id), name: asText(name) }] : [],
  );
}

/** A `fragment` mark makes the history merge the part into the reply with that `responseId`. */
export function partOf(body: RecordBody, responseId: string, isFurtherPart: boolean): RecordBody {
  const message = body["message"] as Fields;
  return { ...body, message: { ...message, responseId, ...(isFurtherPart ? { fragment: true } : {}) } };
}

/** The program adds this text for the model. People who read the conversation do not see it. */
export function asideBody(body: RecordBody, customType: string): RecordBody {
  const { role, content } = body["message"] as Fields;
  return role === "user" ? { type: "custom_message", customType, content, display: false } : body;
}

export function plainMessage(message: object): Fields {
  // The interface of the message has no index signature.
  return message as unknown as Fields;
}
