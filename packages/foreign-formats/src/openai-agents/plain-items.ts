import { isFields, type Fields } from "@throughline/core/internal";

/** JSON holds bytes as base64 under this name, which no item uses. */
const bytesName = "throughline.bytes";

/**
 * Returns an item as plain JSON: bytes become text, and undefined fields are dropped. Returns null when JSON cannot
 * represent the item.
 */
export function plainJson(value: unknown): Fields | null {
  try {
    const plain: unknown = encode(value, new Set());
    return isFields(plain) ? plain : null;
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return null;
    throw error;
  }
}

function encode(value: unknown, above: Set<object>): unknown {
  if (value instanceof Uint8Array) return { [bytesName]: Buffer.from(value).toString("base64") };
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("JSON has no such number");
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint")
    throw new TypeError("JSON has no such value");
  if (typeof value !== "object" || value === null) return value;
  if (above.has(value)) throw new TypeError("The value holds itself");
  above.add(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null)
    throw new TypeError("JSON has no objects of classes");
  const made = Array.isArray(value)
    ? value.map((one) => encode(one, above))
    : Object.fromEntries(
        Object.entries(value).flatMap(([name, one]) => (one === undefined ? [] : [[name, encode(one, above)]])),
      );
  above.delete(value);
  return made;
}

/** Returns an item with its bytes restored. The function reverses `plainJson`. */
export function withBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBytes);
  if (!isFields(value)) return value;
  const bytes = value[bytesName];
  if (typeof bytes === "string" && Object.keys(value).length === 1) return new Uint8Array(Buffer.from(bytes, "base64"));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withBytes(one)]));
}

/** Returns whether two lists of items are equal. The order of fields does not matter. */
export function sameItems(one: readonly Fields[], other: readonly Fields[]): boolean {
  return one.length === other.length && one.every((item, at) => isSame(item, other[at]));
}

function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => isSame(item, other[at]));
  if (!isFields(one) || !isFields(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

/** Returns whether an item is a call of a tool. */
export function isAgentCall({ type, callId }: Fields): boolean {
  return typeof callId === "string" && typeof type === "string" && type.endsWith("_call");
}

/** Returns whether an item answers a call. */
export function isAgentResult({ type, callId }: Fields): boolean {
  return typeof callId === "string" && typeof type === "string" && /_(?:result|output)$/.test(type);
}

/**
 * Returns an item in the form that the runner stores. The runner drops the provider's id of a call and of its result.
 */
export function agentItemAsStored(item: Fields): Fields {
  if (item["type"] !== "function_call" && item["type"] !== "function_call_result") return item;
  const { id: _id, ...rest } = item;
  return rest;
}

/**
 * Returns whether two items are the same one. Calls and results are compared by call id and type, other items by
 * content.
 */
export function isSameAgentItem(one: Fields, other: Fields): boolean {
  if (one["type"] !== other["type"] && one["role"] !== other["role"]) return false;
  if (typeof one["callId"] === "string" || typeof other["callId"] === "string")
    return one["callId"] === other["callId"] && one["type"] === other["type"];
  return sameItems([meaning(one)], [meaning(other)]);
}

/** The runner or a provider adds ids, a status and provider data. Those fields do not count in a comparison. */
function meaning({ type = "message", role, content, ...rest }: Fields): Fields {
  const texts = typeof content === "string" ? [{ text: content }] : content;
  const said = Array.isArray(texts)
    ? (texts as readonly unknown[]).map((part) =>
        isFields(part) && typeof part["text"] === "string" ? part["text"] : part,
      )
    : texts;
  if (role !== undefined) return { type, role, content: said };
  const { id: _id, status: _status, providerData: _data, ...own } = rest;
  return { type, content: said, ...own };
}
