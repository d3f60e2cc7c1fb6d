import { isFields } from "@throughline/core/internal";
import { createHash } from "node:crypto";
import { textOfParts, withoutMarks } from "./message-parts.ts";
import { apiReadings, type WireApi } from "./wire-api.ts";

/** Is the parent hash of the first message of a chain. */
export const rootHash = "";

/**
 * Hashes a message together with all messages before it. Cache marks, thinking, and fields that a program may drop from
 * a reply do not count. Call ids do not count for an API without lasting ids.
 *
 * @param messages the messages of the records that the message is kept as
 */
export function chainHash(parent: string, messages: readonly unknown[], api: WireApi): string {
  const { isWithoutIds } = apiReadings[api];
  const large = textOfParts(messages);
  const said = large === null ? messages.map((message) => sayingOf(message, isWithoutIds)) : [withoutMarks(large)];
  return createHash("sha256")
    .update(`${parent}\n${JSON.stringify(said)}`)
    .digest("hex")
    .slice(0, 32);
}

function sayingOf(message: unknown, isWithoutIds: boolean): unknown {
  // A value without a role is not a message, so all of its fields count.
  if (!isFields(message) || message["role"] === undefined) return sorted(message);
  const { role, content, toolCallId, isError, name } = message;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const list = Array.isArray(blocks) ? blocks : [];
  const said =
    role === "assistant" ? list.flatMap((block) => replySaying(block, isWithoutIds)) : list.flatMap(blockSaying);
  const names = isWithoutIds ? {} : { toolCallId };
  return { role, said, ...names, name, ...(isError === true ? { isError } : {}) };
}

function replySaying(block: unknown, isWithoutIds: boolean): readonly unknown[] {
  if (!isFields(block) || block["type"] === "thinking") return [];
  if (block["type"] === "text") return saidText(String(block["text"]).trimEnd());
  if (block["type"] !== "toolCall") return [sorted(block)];
  const { id, name, arguments: given, partialJson } = block;
  return [{ ...(isWithoutIds ? {} : { id }), name, given: sorted(given), partialJson }];
}

function blockSaying(block: unknown): readonly unknown[] {
  if (isFields(block) && block["type"] === "text") return saidText(String(block["text"]));
  return [sorted(block)];
}

function saidText(text: string): readonly unknown[] {
  return text === "" ? [] : [text];
}

/** Sorts members and drops cache marks and null values, because programs differ in these. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isFields(value)) return value;
  const names = Object.keys(value).filter((name) => name !== "cache_control" && value[name] !== null);
  return names.toSorted().map((name) => [name, sorted(value[name])]);
}
