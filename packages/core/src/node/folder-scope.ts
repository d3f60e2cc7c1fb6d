import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, resolve, sep } from "node:path";

const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);

/**
 * Resolves the links of an absolute path. Of a folder that is gone, the part that still exists is resolved. Returns null
 * if a part of the path cannot be read, because its target is then unknown.
 */
export function resolvedFolder(path: string): string | null {
  const gone: string[] = [];
  for (let at = resolve(path); ; at = dirname(at)) {
    try {
      return resolve(realpathSync(at), ...gone);
    } catch (error) {
      if (!absent.has((error as { readonly code?: unknown }).code) || at === dirname(at)) return null;
      gone.unshift(basename(at));
    }
  }
}

/** Resolves links; returns the path unchanged if they cannot be resolved. */
export function realFolder(path: string): string {
  return resolvedFolder(path) ?? path;
}

/**
 * Returns a function that is true for this folder and for every folder inside it, after links are resolved. It is false
 * for an unknown, relative or unreadable folder. The answer for a path is kept, because many sessions share a folder.
 */
export function folderScope(folder: string): (cwd: unknown) => boolean {
  const root = isAbsolute(folder) ? resolvedFolder(folder) : null;
  const answers = new Map<string, boolean>();
  return (cwd) => {
    if (root === null || typeof cwd !== "string" || !isAbsolute(cwd)) return false;
    const known = answers.get(cwd);
    if (known !== undefined) return known;
    const path = cwd.includes("\0") ? null : resolvedFolder(cwd);
    const isInside = path !== null && (path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`));
    answers.set(cwd, isInside);
    return isInside;
  };
}
