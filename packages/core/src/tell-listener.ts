/**
 * Calls a listener with an event. A listener only watches, so its errors and rejected promises are ignored. They must
 * not undo or fail the finished operation, nor end the process.
 */
export function tellListener<Event>(listener: ((event: Event) => void) | null | undefined, event: Event): void {
  try {
    const answer: unknown = listener?.(event);
    if (answer instanceof Promise) answer.catch(() => undefined);
  } catch {
    // A listener's error must not fail the operation.
  }
}
