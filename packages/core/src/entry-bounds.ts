import { isNestedDeeper, maxNesting } from "./nesting.ts";
import { refused } from "./refused.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** How many different members an entry may have, those of its values included. Engines take long for an object of many. */
export const maxEntryMembers: number = 1000;
/** How many bytes an entry may have as JSON. */
export const maxEntryBytes: number = 1024 * 1024;

const encoder = new TextEncoder();

/**
 * Fields of an entry that are to be written, as plain JSON.
 * @throws {ThroughlineError} INPUT_INVALID when they are nested more than `maxNesting` levels deep
 */
export function assertEntryNesting(fields: unknown): void {
  if (isNestedDeeper(fields, maxNesting))
    throw refused("INPUT_INVALID", `The entry is nested more than ${maxNesting} levels deep.`, { levels: maxNesting });
}

/**
 * The same for what the whole entry may have, or what is set of it.
 * @throws {ThroughlineError} INPUT_INVALID also for more than `maxEntryMembers` or `maxEntryBytes`
 */
export function assertEntryBounds(fields: unknown): void {
  assertEntryNesting(fields);
  const excess = entryExcess(fields);
  if (excess !== null) throw entryTooLarge(excess);
}

/** Entries that may be written although they exceed the limits. */
const allowed = new WeakSet<object>();

/**
 * Allows an entry that exceeds the limits to be written in place of `old`, which another program made as large already.
 * Else nobody could reset or change such a session. `content` is the part of the entry that may not be larger than the old one.
 */
export function allowAsLarge(entry: object, content: unknown, old: unknown): void {
  if (entryExcess(entry) === null) return;
  const [after, before] = [sizeOf(content), sizeOf(old)];
  const isSmall = after.members <= Math.max(before.members, maxEntryMembers);
  if (isSmall && after.bytes <= Math.max(before.bytes, maxEntryBytes)) allowed.add(entry);
}

/** Whether `allowAsLarge` allowed the entry. A copy of it that a store makes is allowed with it. */
export function isAllowedAsLarge(entry: unknown): boolean {
  return typeof entry === "object" && entry !== null && allowed.has(entry);
}

/** Allows the copy of an entry that is allowed. */
export function allowCopy(copy: object): void {
  allowed.add(copy);
}

function sizeOf(fields: unknown): { readonly members: number; readonly bytes: number } {
  const names = new Set<string>();
  countNames(fields, names, Infinity);
  return { members: names.size, bytes: encoder.encode(JSON.stringify(fields) ?? "").length };
}

/** Looks at the members of the entry itself, before anything is copied. @throws {ThroughlineError} INPUT_INVALID */
export function assertFewMembers(fields: unknown): void {
  if (typeof fields === "object" && fields !== null && Object.keys(fields).length > maxEntryMembers)
    throw entryTooLarge("members");
}

/** The refusal of an entry by the limit that it exceeds. */
export function entryTooLarge(of: EntryLimit): ThroughlineError {
  const most = of === "members" ? maxEntryMembers : maxEntryBytes;
  const message = `The entry has more than ${most} ${of === "members" ? "different members" : "bytes"}.`;
  return new ThroughlineError("INPUT_INVALID", message, {
    outcome: "not-applied",
    details: { of, limit: most },
    remedy: "Remove fields of the entry, or append what they hold as records.",
  });
}

/** What an entry may have too much of. */
export type EntryLimit = "members" | "bytes";

/** The limit that an entry exceeds; null when it may be written. */
export function entryExcess(fields: unknown): EntryLimit | null {
  const names = new Set<string>();
  countNames(fields, names, maxEntryMembers);
  if (names.size > maxEntryMembers) return "members";
  const text = JSON.stringify(fields) as string | undefined;
  const mayBeLarge = text !== undefined && text.length * 3 > maxEntryBytes;
  return mayBeLarge && encoder.encode(text).length > maxEntryBytes ? "bytes" : null;
}

/** Collects the names of all members, until there are more than `most`. */
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
