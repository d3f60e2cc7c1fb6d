import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { Buffer } from "node:buffer";
import { ThroughlineError } from "@throughline/core";
import { isFields } from "@throughline/core/internal";
import { isLangchainMessage } from "@throughline/foreign-formats/internal";
import type { TypedText } from "./thread-records.ts";

export interface DumpedValue extends TypedText {
  /** Holds the texts of the messages when the value is a list of messages alone; null otherwise. */
  readonly messages: readonly string[] | null;
  /** Lists the ids of the messages anywhere in the value. */
  readonly messageIds: readonly string[];
}

/**
 * Serializes a value.
 * @param before the previous value: of a list of messages that grew, only the new ones are read
 * @throws {ThroughlineError} INPUT_INVALID for a value that the serializer refuses
 */
export async function dump(
  serde: SerializerProtocol,
  value: unknown,
  what: string,
  before?: DumpedValue,
): Promise<DumpedValue> {
  const { type, bytes } = await dumped(serde, value, what);
  if (type !== "json") return { type, data: toBase64(bytes), encoding: "base64", messages: null, messageIds: [] };
  const data = typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8");
  // LangGraph's serializer writes this text instead of a value that it cannot write.
  if (data === unserializable && value !== JSON.parse(unserializable)) throw refused(what);
  const plain = { type, data, messages: null, messageIds: [] };
  const grown = before === undefined ? null : grownList(before, data);
  if (grown !== null) return { ...plain, ...grown };
  if (!data.includes('"lc":1')) return data === "[]" ? { ...plain, messages: [] } : plain;
  const parsed: unknown = parsedJson(data);
  const isList = Array.isArray(parsed) && parsed.every(isLangchainMessage);
  const messages = isList ? parsed.map((message) => JSON.stringify(message)) : null;
  return { type, data, messages, messageIds: [...messageIdsOf(parsed)] };
}

/** A list usually starts with the text of the previous one. Then only the new messages are parsed. */
function grownList(before: DumpedValue, data: string): Pick<DumpedValue, "messages" | "messageIds"> | null {
  const { messages, messageIds, type, data: text } = before;
  if (messages === null || messages.length === 0 || type !== "json") return null;
  if (data === text) return { messages, messageIds };
  if (!data.startsWith(`${text.slice(0, -1)},`)) return null;
  const added = parsedJson(`[${data.slice(text.length)}`);
  if (!Array.isArray(added) || !added.every(isLangchainMessage)) return null;
  const texts = added.map((message) => JSON.stringify(message));
  return { messages: [...messages, ...texts], messageIds: [...messageIds, ...messageIdsOf(added)] };
}

async function dumped(
  serde: SerializerProtocol,
  value: unknown,
  what: string,
): Promise<{ readonly type: string; readonly bytes: Uint8Array | string }> {
  try {
    const [type, bytes] = await serde.dumpsTyped(value);
    return { type, bytes };
  } catch (cause) {
    throw refused(what, cause);
  }
}

const unserializable = '"[unable to serialize, circular reference is too complex to analyze]"';

function refused(what: string, cause?: unknown): ThroughlineError {
  const message = `The serializer cannot write ${what}.`;
  const remedy = "Keep what JSON can hold in the state: no functions, no BigInt, no getters that throw.";
  return new ThroughlineError("INPUT_INVALID", message, {
    outcome: "not-applied",
    remedy,
    ...(cause === undefined ? {} : { cause }),
  });
}

export async function load(serde: SerializerProtocol, { type, data, encoding }: TypedText): Promise<unknown> {
  const given = encoding === "base64" ? new Uint8Array(Buffer.from(data, "base64")) : data;
  return (await serde.loadsTyped(type, given)) as unknown;
}

export function typed({ type, data, encoding }: TypedText): TypedText {
  return encoding === undefined ? { type, data } : { type, data, encoding };
}

function toBase64(bytes: Uint8Array | string): string {
  return (typeof bytes === "string" ? Buffer.from(bytes, "utf8") : Buffer.from(bytes)).toString("base64");
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A custom serializer may call another format "json". Its text is stored unchanged.
    return null;
  }
}

/** Reads the id of a message in the serializer's form. Empty ids and ids over 256 characters identify no message. */
export function messageIdOf(message: unknown): string | null {
  if (!isFields(message) || !isFields(message["kwargs"])) return null;
  const { id } = message["kwargs"];
  return typeof id === "string" && id !== "" && id.length <= 256 ? id : null;
}

function messageIdsOf(value: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  // An explicit stack is used, because a value may be nested deeper than the call stack allows.
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null) continue;
    if (isLangchainMessage(next)) {
      const id = messageIdOf(next);
      if (id !== null) found.add(id);
    }
    for (const inner of Object.values(next)) open.push(inner);
  }
  return found;
}
