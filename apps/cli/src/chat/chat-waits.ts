/**
 * Limits the wait for a running checkpoint at exit. A script that sends one prompt per process waits longer than a
 * person.
 */
export const checkpointWaitMs: { readonly once: number; readonly person: number } = {
  once: 60_000,
  person: 15_000,
};
