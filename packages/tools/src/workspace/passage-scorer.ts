/** Compares the meaning of passages, usually with an embedding model. Throughline includes no implementation. */
export interface PassageScorer {
  /** Returns one number for each passage, in the same order. A higher number means closer to the question. */
  score(question: string, passages: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/** Sets how much the first ranks outweigh later ranks when two orders are merged. */
const rankOffset = 60;

/**
 * Merges two orders, by words and by meaning. Only ranks count, because the scores of the two have different scales. An
 * item that is in one order only ranks behind items in both.
 */
export function fuseOrders<Item>(orders: readonly (readonly Item[])[]): readonly Item[] {
  const points = new Map<Item, number>();
  for (const order of orders) {
    for (const [place, item] of order.entries()) points.set(item, (points.get(item) ?? 0) + 1 / (rankOffset + place));
  }
  return [...points].toSorted(([, one], [, other]) => other - one).map(([item]) => item);
}
