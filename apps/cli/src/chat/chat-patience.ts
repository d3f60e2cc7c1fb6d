/** How long the end of a program waits for a checkpoint in the making: a program that asks one by one, and a person. */
export const checkpointPatienceMs: { readonly once: number; readonly person: number } = {
  once: 60_000,
  person: 15_000,
};
