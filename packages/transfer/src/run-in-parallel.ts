export interface LaneClaim {
  /** Two items that share a name run one after the other, in their order. */
  readonly names: readonly string[];
  /** Counts against `mostWeight`. */
  readonly weight: number;
  /** True if no other item may run, or be requested, at the same time. */
  readonly isAlone: boolean;
}

export interface LaneOptions<Item, Result> {
  /** Limits the items that run at once. */
  readonly width: number;
  /** Limits the sum of weights, unless one item alone exceeds it. */
  readonly mostWeight: number;
  readonly claim: (item: Item) => LaneClaim;
  readonly run: (item: Item) => Promise<Result>;
}

interface Lane<Result> {
  readonly names: readonly string[];
  readonly weight: number;
  /** Never rejects, so that a failure waits for its turn in the order. */
  readonly outcome: Promise<{ readonly result: Result } | { readonly error: unknown }>;
}

/**
 * Runs several items at a time, so that a store can write them in one commit. Yields the results in the order of the
 * items. After a failure no further item starts, and the running ones are awaited.
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
