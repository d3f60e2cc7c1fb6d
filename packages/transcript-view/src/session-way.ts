import type { Steps } from "@throughline/core/internal";

/** Knows which records lead to the head of a session. */
export interface SessionWay {
  /** Returns whether a record is on the way. */
  has(seq: number): boolean;
  /** Lists the first record of each branch beside the way, by seq, with the number of its records. */
  readonly branches: readonly { readonly seq: number; readonly records: number }[];
}

const recordsOfStep = 5000;

/**
 * Walks from the head to the first record. A log whose records stand before their parents has no known way, so all of
 * its records count as on it.
 *
 * @param parents the seq of each record's parent by its own seq, from 1: 0 for a root, -1 for one that is not before it
 */
export function* findWay(parents: readonly number[], headSeq: number): Steps<SessionWay> {
  const isOn = new Uint8Array(parents.length);
  let seq = headSeq;
  for (let step = 1; seq > 0; step++) {
    isOn[seq] = 1;
    seq = parents[seq] ?? -1;
    if (step % recordsOfStep === 0) yield;
  }
  if (seq < 0) return { has: () => true, branches: [] };
  const rootOf = new Int32Array(parents.length);
  const records = new Map<number, number>();
  for (let at = 1; at < parents.length; at++) {
    if (at % recordsOfStep === 0) yield;
    const parent = Math.max(parents[at] ?? 0, 0);
    if (isOn[at] === 1) continue;
    const root = isOn[parent] === 1 || parent === 0 ? at : (rootOf[parent] ?? at);
    rootOf[at] = root;
    records.set(root, (records.get(root) ?? 0) + 1);
  }
  return {
    has: (at) => isOn[at] === 1,
    branches: Array.from(records, ([root, count]) => ({ seq: root, records: count })),
  };
}
