/** Stands for a value, or for a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** Returns whether a value has to be awaited. */
export function isPending<Value>(value: Awaitable<Value>): value is Promise<Value> {
  return typeof (value as Partial<Promise<Value>> | null | undefined)?.then === "function";
}

/**
 * Continues with a value at once, or when its promise resolves. A backend in memory then answers a whole append without
 * a promise, each of which costs as much as a step of the plan.
 */
export function chain<Value, Result>(
  value: Awaitable<Value>,
  next: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return isPending(value) ? value.then(next) : next(value);
}
