import { wireToolName } from "@throughline/core/internal";
import type { IdRule } from "./replay-rules.ts";

/** Gives every call an id that the provider accepts and that no other call of the history has. */
export interface CallIds {
  /** Returns the id unchanged if possible, or else a derived id. The same log always yields the same ids. */
  next(id: string): string;
  /** Captures the changes up to now. The returned function builds the map from sent id to logged id on demand. */
  originals(): () => ReadonlyMap<string, string>;
}

export interface ToolNames {
  of(name: string): string;
  readonly originals: ReadonlyMap<string, string>;
}

/**
 * Creates the ids, optionally after those of a settled beginning.
 * @param base the ids of the beginning, which may grow; it is never changed here
 */
export function createCallIds(
  rule: IdRule,
  base: CallIdState | null = null,
): CallIds & { readonly state: CallIdState } {
  const used = new Set<string>();
  const counts = new Map<string, number>();
  const changed: (readonly [wireId: string, id: string])[] = [];
  const isNew = (id: string): boolean => {
    if (base?.used.has(id) === true) return false;
    const { size } = used;
    return used.add(id).size > size;
  };
  const next = (id: string): string => {
    const own = rule.separator === undefined ? id : (id.split(rule.separator, 1)[0] as string);
    const first = isAllowed(own, rule) ? own : encode(own, rule);
    let wireId = first;
    // Most ids are new, so the loop costs one lookup.
    while (!isNew(wireId)) {
      const count = (counts.get(first) ?? base?.counts.get(first) ?? 1) + 1;
      counts.set(first, count);
      wireId = numbered(first, count, rule);
    }
    if (wireId !== id) changed.push([wireId, id]);
    return wireId;
  };
  const originals = (): (() => ReadonlyMap<string, string>) => {
    const before = base?.changed ?? [];
    const count = before.length;
    const own = changed.slice();
    return () => new Map([...before.slice(0, count), ...own]);
  };
  return { next, originals, state: { used, counts, changed } };
}

/**
 * Holds the assigned ids for a later continuation. It is shared and not copied, because a long history has one id for
 * every call.
 */
export interface CallIdState {
  readonly used: ReadonlySet<string>;
  readonly counts: ReadonlyMap<string, number>;
  readonly changed: readonly (readonly [wireId: string, id: string])[];
}

export function createToolNames(
  rule: IdRule,
  base: ReadonlyMap<string, string> | null = null,
): ToolNames & {
  readonly given: ReadonlyMap<string, string>;
} {
  const given = new Map(base);
  const taken = new Set(given.values());
  const originals = new Map<string, string>();
  for (const [name, wire] of given) if (name !== wire) originals.set(wire, name);
  const of = (name: string): string => {
    const known = given.get(name);
    if (known !== undefined) return known;
    const first = wireToolName(name, rule);
    let wire = first;
    for (let count = 2; taken.has(wire); count++) wire = numbered(first, count, rule);
    taken.add(wire);
    given.set(name, wire);
    if (wire !== name) originals.set(wire, name);
    return wire;
  };
  return { of, originals, given };
}

function isAllowed(id: string, rule: IdRule): boolean {
  const isLength = rule.isExact === true ? id.length === rule.maxLength : id.length <= rule.maxLength;
  return id !== "" && isLength && id.search(rule.forbidden) < 0;
}

function numbered(id: string, count: number, rule: IdRule): string {
  if (rule.isExact === true) return exact(`${id} ${count}`, rule.maxLength);
  const suffix = `_${count}`;
  return id.slice(0, rule.maxLength - suffix.length) + suffix;
}

/**
 * Combines the readable part with a hash of the whole id, so that ids that differ only in replaced characters stay
 * distinct.
 */
function encode(id: string, rule: IdRule): string {
  if (rule.isExact === true) return exact(id, rule.maxLength);
  const hash = fnv1a(id, 0x811c9dc5).toString(36).padStart(7, "0");
  return `${id.replace(rule.forbidden, "_").slice(0, rule.maxLength - hash.length - 1)}_${hash}`;
}

function exact(id: string, length: number): string {
  let high = fnv1a(id, 0x811c9dc5);
  let low = fnv1a(id, 0x01234567);
  let digits = "";
  // The loop divides both 32-bit halves, because a BigInt takes ten times as long, for every call of a history.
  while (digits.length < length) {
    const rest = (high % 36) * 2 ** 32 + low;
    high = Math.floor(high / 36);
    low = Math.floor(rest / 36);
    digits = (rest % 36).toString(36) + digits;
  }
  return digits;
}

function fnv1a(text: string, start: number): number {
  let hash = start;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
