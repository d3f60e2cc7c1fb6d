/**
 * Stores refuse a record or an entry that is nested deeper. A deeper record of another program counts as an attack on
 * its reader. Every reader can therefore walk any value that a store holds. The outermost object is level 1.
 */
export const maxNesting: number = 200;

/**
 * The arguments of a tool call lie four levels deep: in a record, its message, the message's content and a block of it.
 */
export const maxArgumentsNesting: number = maxNesting - 4;

export function isNestedDeeper(value: unknown, levels: number): boolean {
  return isDeeper(value, levels, false);
}

/**
 * Returns whether `text`, the JSON of a value, is nested more than `maxNesting` levels deep. The value alone cannot
 * decide, because a `toJSON` may nest it deeper or flatten it.
 */
export function isJsonTooDeep(value: unknown, text: string): boolean {
  // Each level takes at least two characters, so a short text cannot be too deep.
  if (text.length <= 2 * maxNesting) return false;
  return isDeeper(value, maxNesting, true) && isNestedDeeper(JSON.parse(text), maxNesting);
}

/** With `mayBeJson`, an object with a `toJSON` counts as deep, because its JSON may have any depth. */
function isDeeper(value: unknown, levels: number, mayBeJson: boolean): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0 || (mayBeJson && typeof (value as { readonly toJSON?: unknown }).toJSON === "function")) return true;
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof member === "object" && isDeeper(member, levels - 1, mayBeJson)) return true;
  }
  return false;
}
