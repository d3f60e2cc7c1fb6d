/** Compares meanings: an embedding model behind one function. None is built in. */
export interface PassageScorer {
  /** One number for each passage, in their order; higher is nearer to the question. */
  score(question: string, passages: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/** How much the first places outweigh the later ones where two orders are put together. */
const rankOffset = 60;

/**
 * One order out of two: by words and by meaning. Only places count, because the numbers of one have nothing to do with
 * those of the other. What one of them does not name comes behind what both do.
 */
export function fuseOrders<Item>(orders: readonly (readonly Item[])[]): readonly Item[] {
  const points = new Map<Item, number>();
  for (const order of orders) {
    for (const [place, item] of order.entries()) points.set(item, (points.get(item) ?? 0) + 1 / (rankOffset + place));
  }
  return [...points].toSorted(([, one], [, other]) => other - one).map(([item]) => item);
}
