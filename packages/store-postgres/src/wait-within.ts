import { abortedBefore, refused } from "@throughline/core/internal";

export interface WaitOptions<Value> {
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Ends with the handle of the store. */
  readonly ending: AbortSignal;
  /** Returns the error for a wait that took too long. */
  late(): Error;
  /** Returns a value that comes too late to its owner. */
  unwanted(value: Value): void;
}

/** Waits for a value, the deadline, the signal or the end of the handle. */
export function waitWithin<Value>(
  coming: Promise<Value>,
  { withinMs, signal, ending, late, unwanted }: WaitOptions<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (finish: () => void): void => {
      isOver = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      ending.removeEventListener("abort", onEnd);
      finish();
    };
    const onAbort = (): void => end(() => reject(abortedBefore("the operation was done", signal)));
    const onEnd = (): void => end(() => reject(refused("STORE_CLOSED", "The store handle was closed.")));
    const timer = setTimeout(() => end(() => reject(late())), Math.max(0, withinMs));
    signal?.addEventListener("abort", onAbort);
    ending.addEventListener("abort", onEnd);
    coming.then(
      (value) => {
        if (isOver) unwanted(value);
        else end(() => resolve(value));
      },
      (error: unknown) => {
        if (!isOver) end(() => reject(asError(error)));
      },
    );
    if (signal?.aborted === true) onAbort();
    else if (ending.aborted) onEnd();
  });
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
