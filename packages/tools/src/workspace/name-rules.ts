import { namesBelow } from "./contained-path.ts";
import { hasHiddenName, type PlaceUse } from "./hidden-names.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";

/** What is decided by the names that lead from the root to a place, after every link was followed. */
export interface NameRules {
  /** Names of places that may be used although they begin with a dot. */
  readonly allowed: readonly (readonly string[])[];
  /** Names of the folders that may be written in; null: all. */
  readonly writable: readonly (readonly string[])[] | null;
}

/** As they are written: a link must not make what it leads to allowed. */
export function writtenNames(root: string, paths: readonly string[]): NameRules["allowed"] {
  return paths.flatMap((path) => {
    try {
      return [namesBelow(path, [root])];
    } catch (error) {
      // Outside nothing is allowed, whoever says so.
      if (error instanceof WorkspaceToolRefusal && error.reason === "outside") return [];
      throw error;
    }
  });
}

/** Names below an allowed name are checked again: `.github/.env` is not allowed with `.github`. */
export function isHidden(names: readonly string[], use: PlaceUse, rules: NameRules): boolean {
  return hasHiddenName(names.slice(allowedDepth(names, rules)), use);
}

/** By the names after every link was followed, so that a link inside a writable folder leads to no other one. */
export function isWritable(names: readonly string[], { writable }: NameRules): boolean {
  if (writable === null) return true;
  return writable.some((folder) => names.length > folder.length && folder.every((name, at) => names[at] === name));
}

/** How many of the names were allowed. */
export function allowedDepth(names: readonly string[], { allowed }: NameRules): number {
  const found = allowed.filter((each) => each.every((name, index) => names[index] === name));
  return Math.max(0, ...found.map(({ length }) => length));
}
