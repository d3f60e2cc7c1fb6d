/**
 * Stores refuse a record or an entry that is nested deeper. Another program's record of such depth counts as an attack
 * on its reader. So every reader can walk what any store holds. The outermost object is level 1.
 */
export const maxNesting: number = 200;

/** The same of a tool call's arguments, which lie in a record, its message, that one's content and a block of it. */
export const maxArgumentsNesting: number = maxNesting - 4;

/** Whether a value is nested deeper than `levels`. */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  return isDeeper(value, levels, false);
}

/**
 * Whether what JSON makes of a value is nested more than `maxNesting` levels deep. `text`: that JSON. A `toJSON` may nest
 * what the value does not, or flatten it.
 */
export function isJsonTooDeep(value: unknown, text: string): boolean {
  // Each level takes two characters at least.
  if (text.length <= 2 * maxNesting) return false;
  return isDeeper(value, maxNesting, true) && isNestedDeeper(JSON.parse(text), maxNesting);
}

/** `mayBeJson`: what has a `toJSON` may be of any depth, and counts as deep. */
function isDeeper(value: unknown, levels: number, mayBeJson: boolean): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0 || (mayBeJson && typeof (value as { readonly toJSON?: unknown }).toJSON === "function")) return true;
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof member === "object" && isDeeper(member, levels - 1, mayBeJson)) return true;
  }
  return false;
}
