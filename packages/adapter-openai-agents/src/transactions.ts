import { createHash } from "node:crypto";
import type { AgentInputItem, SessionHistoryTransactionArgs } from "@openai/agents-core";
import { isFields, type Fields } from "@throughline/core/internal";
import { plainJson, sameItems } from "@throughline/foreign-formats/internal";
import type { LogView } from "@throughline/foreign-formats/internal";
import { userError } from "./sdk-errors.ts";

export interface CheckedTransaction {
  readonly operationId: string;
  readonly hash: string;
  /** Holds the items to replace at the end of the history; null appends only. */
  readonly expectedSuffix: readonly Fields[] | null;
  readonly items: readonly Fields[];
}

/** Uses the texts of the SDK's own store, because callers may search for them. */
export const transactionTexts = {
  arguments: "Session history transaction arguments are invalid.",
  other: "Session history operation was already applied with a different transaction.",
  suffix: "Session history suffix no longer matches the transaction precondition.",
  id: "Session history transaction operationId must be a non-empty string.",
  object: "Session history transaction must be an object.",
  type: "Unsupported session history transaction type.",
  append: "Session history append transaction fields are invalid.",
  replace: "Session history suffix transaction fields are invalid.",
  items: "Session history transaction items contain invalid or unsupported data.",
} as const;

/**
 * Checks a transaction with the rules and the order of the SDK's own store, so that callers get the same errors.
 * @throws the SDK's UserError
 */
export async function checkTransaction(args: SessionHistoryTransactionArgs): Promise<CheckedTransaction> {
  const { operationId, transaction: given } = await readArguments(args);
  if (typeof operationId !== "string" || operationId.trim() === "") throw await userError(transactionTexts.id);
  if (typeof given !== "object" || given === null) throw await userError(transactionTexts.object);
  if (!isData(given, new Set())) throw await userError(transactionTexts.items);
  const transaction = given as Fields;
  const { type, items, expectedSuffix, replacement } = transaction;
  const size = Object.keys(transaction).length;
  if (type === "append_items") {
    if (size !== 2 || !Array.isArray(items)) throw await userError(transactionTexts.append);
    return { operationId, hash: await hashOf(transaction), expectedSuffix: null, items: await checkedItems(items) };
  }
  if (type !== "replace_suffix") throw await userError(transactionTexts.type);
  if (size !== 3 || !Array.isArray(expectedSuffix) || !Array.isArray(replacement))
    throw await userError(transactionTexts.replace);
  const suffix = await checkedItems(expectedSuffix);
  return {
    operationId,
    hash: await hashOf(transaction),
    expectedSuffix: suffix,
    items: await checkedItems(replacement),
  };
}

async function readArguments(args: unknown): Promise<{ readonly operationId: unknown; readonly transaction: unknown }> {
  try {
    const { operationId, transaction } = args as Fields;
    return { operationId, transaction };
  } catch (cause) {
    throw await userError(transactionTexts.arguments, cause);
  }
}

/**
 * Accepts plain data only. JSON would change or lose an accessor, hole, symbol, hidden field, class instance or cycle.
 */
function isData(value: unknown, above: Set<object>): boolean {
  if (typeof value !== "object" || value === null) return !["function", "symbol", "bigint"].includes(typeof value);
  const names = Reflect.ownKeys(value);
  if (value instanceof Uint8Array) return names.length === value.length;
  if (above.has(value)) return false;
  const isList = Array.isArray(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!isList && prototype !== Object.prototype && prototype !== null) return false;
  if (isList && names.length !== value.length + 1) return false;
  above.add(value);
  const isAllData = names.every((name) => {
    if (isList && name === "length") return true;
    const field = Object.getOwnPropertyDescriptor(value, name);
    const isPlace = !isList || (typeof name === "string" && /^\d{1,10}$/.test(name));
    return (
      typeof name === "string" &&
      isPlace &&
      field?.enumerable === true &&
      isData(field.value, above) &&
      "value" in field
    );
  });
  above.delete(value);
  return isAllData;
}

async function checkedItems(items: readonly unknown[]): Promise<readonly Fields[]> {
  const { protocol } = await import("@openai/agents-core");
  const plain = items.map((item) => plainJson(item));
  if (plain.some((item, at) => item === null || !protocol.ModelItem.safeParse(items[at]).success))
    throw await userError(transactionTexts.items);
  return plain as readonly Fields[];
}

async function hashOf(transaction: Fields): Promise<string> {
  const plain = plainJson(transaction);
  if (plain === null) throw await userError(transactionTexts.items);
  return createHash("sha256").update(sortedJson(plain)).digest("hex");
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isFields(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

/**
 * Returns the id of the record that remembers an operation. Every process computes the same id, so the store refuses a
 * second one. The id includes the reset, because a cleared session forgets its operations.
 */
export function operationRecordId({ records, headId }: LogView, operationId: string): string {
  const reset = headId === null ? undefined : records.findLast(({ type, side }) => type === "reset" && !side);
  const hash = createHash("sha256")
    .update(`${reset?.id ?? ""}\0${operationId}`)
    .digest("hex");
  return `operation-${hash.slice(0, 40)}`;
}

export function endsWith(items: readonly Fields[], suffix: readonly Fields[]): boolean {
  return suffix.length <= items.length && sameItems(items.slice(items.length - suffix.length), suffix);
}

export function asItem(value: Fields): AgentInputItem {
  // The SDK validated the item on arrival, or the mapping built it for the SDK's schema.
  return value as unknown as AgentInputItem;
}
