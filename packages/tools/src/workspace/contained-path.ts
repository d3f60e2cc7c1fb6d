import { isAbsolute, join, normalize, relative, sep } from "node:path";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";

const longestPath = 4096;

/**
 * Returns the names that lead from the root to a path, computed from the text of the path alone. `..` can lead up to
 * the root and no further.
 *
 * @param roots the root as the caller wrote it and its real path; an absolute path may begin with either
 *
 * @throws {WorkspaceToolRefusal} for an invalid path, and for a path outside of the root
 */
export function namesBelow(path: string, roots: readonly string[]): readonly string[] {
  if (path === "") throw new WorkspaceToolRefusal("arguments", 'The path is empty; "." is the workspace itself.');
  if (path.includes("\0")) throw new WorkspaceToolRefusal("arguments", "The path holds a NUL character.");
  if (!path.isWellFormed()) throw new WorkspaceToolRefusal("arguments", "The path is not well-formed text.");
  if (path.length > longestPath) {
    throw new WorkspaceToolRefusal(
      "arguments",
      `The path is too long: ${path.length} characters, at most ${longestPath}.`,
    );
  }
  for (const root of roots) {
    const below = relative(root, isAbsolute(path) ? normalize(path) : join(root, path));
    if (isBelow(below)) return below === "" ? [] : below.split(sep);
  }
  throw new WorkspaceToolRefusal("outside", `${quoted(path)} lies outside the workspace.`);
}

/** On Windows `relative` returns an absolute path when the drives differ, so that case counts as outside too. */
export function isBelow(path: string): boolean {
  return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}
