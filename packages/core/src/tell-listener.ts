/**
 * Calls a listener with an event. It watches, and decides nothing: what it throws, or what a promise of it is rejected
 * with, is its own affair. That must not undo or fail what was done, nor end the process.
 */
export function tellListener<Event>(listener: ((event: Event) => void) | null | undefined, event: Event): void {
  try {
    const answer: unknown = listener?.(event);
    if (answer instanceof Promise) answer.catch(() => undefined);
  } catch {
    // See above.
  }
}
