import { anyOfMutants } from "./any-of-mutants.ts";
import { appendMutants } from "./append-mutants.ts";
import { codecMutants } from "./codec-mutants.ts";
import { entryMutants } from "./entry-mutants.ts";
import { exclusivelyMutants } from "./exclusively-mutants.ts";
import { importedFromMutants } from "./imported-from-mutants.ts";
import { forkMutants, watchMutants } from "./facet-mutants.ts";
import { searchMutants } from "./search-mutants.ts";
import { headMutants } from "./head-mutants.ts";
import { idempotencyMutants, turnMutants } from "./keyed-mutants.ts";
import { maintenanceMutants } from "./maintenance-mutants.ts";
import { fileMutants } from "./file-mutants.ts";
import { fileReferenceMutants } from "./file-reference-mutants.ts";
import { moveMutants, redactMutants } from "./move-mutants.ts";
import {
  concurrencyMutants,
  durabilityMutants,
  errorMutants,
  eventMutants,
  lifecycleMutants,
  manifestMutants,
} from "./handle-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { copyMutants, limitMutants, sourceMutants } from "./payload-mutants.ts";
import { closedMutants, optionMutants } from "./option-mutants.ts";
import { pagingMutants } from "./paging-mutants.ts";
import { refusalMutants } from "./refusal-mutants.ts";
import { isolationMutants, listMutants } from "./place-mutants.ts";
import { headMutants as outlineMutants, storedMutants } from "./stored-mutants.ts";
import { partialMutants } from "./partial-mutants.ts";
import { textCopyMutants } from "./text-copy-mutants.ts";
import { vectorMutants } from "./vector-mutants.ts";
import { windowMutants } from "./window-mutants.ts";

export const mutants: readonly Mutant[] = [
  ...manifestMutants,
  ...lifecycleMutants,
  ...closedMutants,
  ...optionMutants,
  ...appendMutants,
  ...storedMutants,
  ...headMutants,
  ...outlineMutants,
  ...windowMutants,
  ...pagingMutants,
  ...idempotencyMutants,
  ...turnMutants,
  ...exclusivelyMutants,
  ...entryMutants,
  ...listMutants,
  ...importedFromMutants,
  ...isolationMutants,
  ...moveMutants,
  ...redactMutants,
  ...textCopyMutants,
  ...partialMutants,
  ...fileMutants,
  ...fileReferenceMutants,
  ...sourceMutants,
  ...limitMutants,
  ...refusalMutants,
  ...errorMutants,
  ...durabilityMutants,
  ...concurrencyMutants,
  ...codecMutants,
  ...copyMutants,
  ...eventMutants,
  ...searchMutants,
  ...anyOfMutants,
  ...vectorMutants,
  ...forkMutants,
  ...watchMutants,
  ...maintenanceMutants,
];
