import { namesBelow } from "./contained-path.ts";
import { hasHiddenName, type PlaceUse } from "./hidden-names.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";

/** Holds the rules for the names from the root to a location. They apply after every link was followed. */
export interface NameRules {
  /** Holds the names that may be used although they begin with a dot. */
  readonly allowed: readonly (readonly string[])[];
  /** Holds the names of the writable folders; null means all folders. */
  readonly writable: readonly (readonly string[])[] | null;
}

/** The names stay as written. Following links here would let a link allow its target. */
export function writtenNames(root: string, paths: readonly string[]): NameRules["allowed"] {
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
export function isHidden(names: readonly string[], use: PlaceUse, rules: NameRules): boolean {
  return hasHiddenName(names.slice(allowedDepth(names, rules)), use);
}

/**
 * The names are those after all links were followed, so a link inside a writable folder does not make another folder
 * writable.
 */
export function isWritable(names: readonly string[], { writable }: NameRules): boolean {
  if (writable === null) return true;
  return writable.some((folder) => names.length > folder.length && folder.every((name, at) => names[at] === name));
}

export function allowedDepth(names: readonly string[], { allowed }: NameRules): number {
  const found = allowed.filter((each) => each.every((name, index) => names[index] === name));
  return Math.max(0, ...found.map(({ length }) => length));
}
