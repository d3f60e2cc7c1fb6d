import { appendMutants } from "./append-mutants.ts";
import { concurrencyMutants, durabilityMutants, errorMutants, eventMutants, lifecycleMutants, manifestMutants } from "./handle-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { codecMutants, copyMutants, limitMutants, sourceMutants } from "./payload-mutants.ts";
import { isolationMutants, listMutants, moveMutants, redactMutants } from "./place-mutants.ts";
import { entryMutants, idempotencyMutants, turnMutants } from "./state-mutants.ts";

export const mutants: readonly Mutant[] = [
  ...manifestMutants,
  ...lifecycleMutants,
  ...appendMutants,
  ...idempotencyMutants,
  ...turnMutants,
  ...entryMutants,
  ...listMutants,
  ...isolationMutants,
  ...moveMutants,
  ...redactMutants,
  ...sourceMutants,
  ...limitMutants,
  ...errorMutants,
  ...durabilityMutants,
  ...concurrencyMutants,
  ...codecMutants,
  ...copyMutants,
  ...eventMutants,
];
