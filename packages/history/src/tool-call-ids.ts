import type { IdRule } from "./replay-rules.ts";

/** Gives every call an id the provider takes and no other call of the history has. */
export interface CallIds {
  /** The same id comes back where it can; otherwise one made from it, the same in every rendering of the same log. */
  next(id: string): string;
  /** What was changed: the id in the log by the id the provider gets. */
  readonly originals: ReadonlyMap<string, string>;
}

export function createCallIds(rule: IdRule): CallIds {
  const used = new Set<string>();
  const originals = new Map<string, string>();
  const counts = new Map<string, number>();
  const next = (id: string): string => {
    const base = isAllowed(id, rule) ? id : encode(id, rule);
    let wireId = base;
    while (used.has(wireId)) {
      const count = (counts.get(base) ?? 1) + 1;
      counts.set(base, count);
      const suffix = `_${count}`;
      wireId = base.slice(0, rule.maxLength - suffix.length) + suffix;
    }
    used.add(wireId);
    if (wireId !== id) originals.set(wireId, id);
    return wireId;
  };
  return { next, originals };
}

function isAllowed(id: string, rule: IdRule): boolean {
  return id !== "" && id.length <= rule.maxLength && id.search(rule.forbidden) < 0;
}

/** The readable part and a hash of the whole, so that ids that differ only in what is replaced stay apart. */
function encode(id: string, rule: IdRule): string {
  const hash = fnv1a(id).toString(36).padStart(7, "0");
  return `${id.replace(rule.forbidden, "_").slice(0, rule.maxLength - hash.length - 1)}_${hash}`;
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
