import type { AppendDraft } from "./record-draft.ts";

const stated = new WeakMap<readonly AppendDraft[], string>();

/**
 * States a short text that identifies drafts, for a caller who knows one. Writing all drafts and hashing that takes a fifth
 * of the processor time of an import. Another array with equal drafts has another fingerprint, so this is only for keys
 * that no other append uses.
 */
export function stateFingerprint(drafts: readonly AppendDraft[], text: string): void {
  stated.set(drafts, text);
}

/** Returns what was stated of an array of drafts. */
export function statedFingerprint(drafts: readonly AppendDraft[]): string | undefined {
  return stated.get(drafts);
}
