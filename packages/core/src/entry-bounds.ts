import { isNestedDeeper, maxNesting } from "./nesting.ts";
import { refused } from "./refused.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * Limits the different member names of an entry, nested members included, because engines are slow with objects of many
 * members.
 */
export const maxEntryMembers: number = 1000;
export const maxEntryBytes: number = 1024 * 1024;

const encoder = new TextEncoder();

/**
 * Checks how deep the fields of an entry are nested, before they are written as plain JSON.
 * @throws {ThroughlineError} INPUT_INVALID when they are nested more than `maxNesting` levels deep
 */
export function assertEntryNesting(fields: unknown): void {
  if (isNestedDeeper(fields, maxNesting))
    throw refused("INPUT_INVALID", `The entry is nested more than ${maxNesting} levels deep.`, { levels: maxNesting });
}

/**
 * Checks the nesting and the size of a whole entry, or of the fields that are set in it.
 * @throws {ThroughlineError} INPUT_INVALID also for more than `maxEntryMembers` or `maxEntryBytes`
 */
export function assertEntryBounds(fields: unknown): void {
  assertEntryNesting(fields);
  const excess = entryExcess(fields);
  if (excess !== null) throw entryTooLarge(excess);
}

/** These entries may exceed the limits. A weak set keeps the permission without keeping the entry in memory. */
const allowed = new WeakSet<object>();

/**
 * Allows an entry that exceeds the limits to replace `old`, which another program already made as large. Otherwise such
 * a session could not be reset or changed. `content` is the part of the entry that may not be larger than the old
 * entry.
 */
export function allowAsLarge(entry: object, content: unknown, old: unknown): void {
  if (entryExcess(entry) === null) return;
  const [after, before] = [sizeOf(content), sizeOf(old)];
  const isSmall = after.members <= Math.max(before.members, maxEntryMembers);
  if (isSmall && after.bytes <= Math.max(before.bytes, maxEntryBytes)) allowed.add(entry);
}

/** A store writes a copy of the entry, so `allowCopy` extends the permission to the copy. */
export function isAllowedAsLarge(entry: unknown): boolean {
  return typeof entry === "object" && entry !== null && allowed.has(entry);
}

/** The permission belongs to the object, so a store that copies an entry passes the copy here. */
export function allowCopy(copy: object): void {
  allowed.add(copy);
}

function sizeOf(fields: unknown): { readonly members: number; readonly bytes: number } {
  const names = new Set<string>();
  countNames(fields, names, Infinity);
  return { members: names.size, bytes: encoder.encode(JSON.stringify(fields) ?? "").length };
}

/**
 * Checks only the direct members of the entry, so that the check can run before anything is copied.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertFewMembers(fields: unknown): void {
  if (typeof fields === "object" && fields !== null && Object.keys(fields).length > maxEntryMembers)
    throw entryTooLarge("members");
}

export function entryTooLarge(of: EntryLimit): ThroughlineError {
  const most = of === "members" ? maxEntryMembers : maxEntryBytes;
  const message = `The entry has more than ${most} ${of === "members" ? "different members" : "bytes"}.`;
  return new ThroughlineError("INPUT_INVALID", message, {
    outcome: "not-applied",
    details: { of, limit: most },
    remedy: "Remove fields of the entry, or append what they hold as records.",
  });
}

export type EntryLimit = "members" | "bytes";

export function entryExcess(fields: unknown): EntryLimit | null {
  const names = new Set<string>();
  countNames(fields, names, maxEntryMembers);
  if (names.size > maxEntryMembers) return "members";
  const text = JSON.stringify(fields) as string | undefined;
  const mayBeLarge = text !== undefined && text.length * 3 > maxEntryBytes;
  return mayBeLarge && encoder.encode(text).length > maxEntryBytes ? "bytes" : null;
}

/** The search stops when there are more names than `most`, because the exact number is not needed. */
function countNames(value: unknown, names: Set<string>, most: number): void {
  if (typeof value !== "object" || value === null || names.size > most) return;
  if (Array.isArray(value)) {
    for (const element of value) countNames(element, names, most);
    return;
  }
  for (const [name, member] of Object.entries(value)) {
    names.add(name);
    countNames(member, names, most);
  }
}
