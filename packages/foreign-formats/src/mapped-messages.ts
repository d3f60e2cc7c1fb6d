import type { Fields } from "@throughline/core/internal";
import { asText } from "./as-text.ts";
import { hasErrorCode } from "@throughline/core";
import type { RecordBody } from "./unit-records.ts";

/** Runs the mapping of a provider's messages; null when the mapping refuses the input. */
export function attempt<Read>(read: () => Read): Read | null {
  try {
    return read();
  } catch (error) {
    if (hasErrorCode(error, "INPUT_INVALID")) return null;
    throw error;
  }
}

/** The tool calls in the content of a mapped reply. */
export function callsOf(content: unknown): readonly { readonly id: string; readonly name: string }[] {
  if (!Array.isArray(content)) return [];
  return (content as readonly Fields[]).flatMap(({ type, id, name }) =>
    type === "toolCall" ? [{ id: asText(id), name: asText(name) }] : [],
  );
}

/** Says of a part of a reply whose part it is. */
export function partOf(body: RecordBody, responseId: string, isFurtherPart: boolean): RecordBody {
  const message = body["message"] as Fields;
  return { ...body, message: { ...message, responseId, ...(isFurtherPart ? { fragment: true } : {}) } };
}

/** A draft's message as the plain JSON that it is. */
export function plainMessage(message: object): Fields {
  // Its interface has no index signature.
  return message as unknown as Fields;
}
