import { namesBelow } from "./contained-path.ts";
import { hasHiddenName, type PlaceUse } from "./hidden-names.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";

/**
 * Holds the rules for a path, which is written as the list of its names from the root. They apply to the path after
 * every link was followed.
 */
export interface NameRules {
  /** Lists the paths that tools may use although a name in them begins with a dot. */
  readonly allowed: readonly (readonly string[])[];
  /** Lists the folders in which tools may write; null means all folders. */
  readonly writable: readonly (readonly string[])[] | null;
}

/** Splits the paths of an option into names without following links. A followed link would allow its target. */
export function namesAsWritten(root: string, paths: readonly string[]): NameRules["allowed"] {
  return paths.flatMap((path) => {
    try {
      return [namesBelow(path, [root])];
    } catch (error) {
      // A path outside of the workspace is never allowed, even by an option.
      if (error instanceof WorkspaceToolRefusal && error.reason === "outside") return [];
      throw error;
    }
  });
}

/** Names below an allowed name are checked again: `.github/.env` is not allowed with `.github`. */
export function isHiddenPath(names: readonly string[], use: PlaceUse, rules: NameRules): boolean {
  return hasHiddenName(names.slice(allowedDepth(names, rules)), use);
}

/**
 * Returns whether tools may write at this path. Its links were followed, so a link inside a writable folder does not
 * make another folder writable.
 */
export function isWritable(names: readonly string[], { writable }: NameRules): boolean {
  if (writable === null) return true;
  // The folder itself is not a file in it, so the path must be longer.
  return writable.some(
    (folder) => names.length > folder.length && folder.every((name, index) => names[index] === name),
  );
}

/** Returns the number of leading names that the longest matching `allowed` path covers; 0 without a match. */
export function allowedDepth(names: readonly string[], { allowed }: NameRules): number {
  const matching = allowed.filter((path) => path.every((name, index) => names[index] === name));
  return Math.max(0, ...matching.map(({ length }) => length));
}
