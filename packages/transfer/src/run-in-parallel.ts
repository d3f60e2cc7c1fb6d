/** What a piece of work needs for itself. */
export interface LaneClaim {
  /** Two pieces with a name in common are done one after the other, in their order. */
  readonly names: readonly string[];
  /** What it takes of what they have together. */
  readonly weight: number;
  /** Nothing else is done, and nothing further asked for, while it runs. */
  readonly isAlone: boolean;
}

export interface LaneOptions<Item, Result> {
  /** The most at once. */
  readonly width: number;
  /** Together no more than this, unless one alone has more. */
  readonly mostWeight: number;
  readonly claim: (item: Item) => LaneClaim;
  readonly run: (item: Item) => Promise<Result>;
}

interface Lane<Result> {
  readonly names: readonly string[];
  readonly weight: number;
  /** Never rejects. */
  readonly outcome: Promise<{ readonly result: Result } | { readonly error: unknown }>;
}

/**
 * Does several pieces of work at a time, so that a store can write them in one commit, and gives the results in the order
 * of the pieces. When one fails the others that were begun are waited for; none is begun after it.
 */
export async function* runInParallel<Item, Result>(
  items: AsyncIterable<Item>,
  { width, mostWeight, claim, run }: LaneOptions<Item, Result>,
): AsyncGenerator<Result> {
  const lanes: Lane<Result>[] = [];
  const front = async (): Promise<Result> => {
    const outcome = await lanes[0]?.outcome;
    lanes.shift();
    if (outcome === undefined) throw new TypeError("there is no lane to wait for");
    if ("error" in outcome) throw outcome.error;
    return outcome.result;
  };
  try {
    for await (const item of items) {
      const { names, weight, isAlone } = claim(item);
      const isTaken = (): boolean => lanes.some((lane) => lane.names.some((name) => names.includes(name)));
      const isFull = (): boolean =>
        lanes.length >= width || lanes.reduce((sum, lane) => sum + lane.weight, weight) > mostWeight;
      while (lanes.length > 0 && (isAlone || isFull() || isTaken())) yield await front();
      lanes.push({
        names,
        weight,
        outcome: run(item).then(
          (result) => ({ result }),
          (error: unknown) => ({ error }),
        ),
      });
      if (isAlone) yield await front();
    }
    while (lanes.length > 0) yield await front();
  } finally {
    await Promise.all(lanes.map(({ outcome }) => outcome));
  }
}
