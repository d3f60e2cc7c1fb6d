import { realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** True if `folder` is `inner` or contains it, compared by device and inode. False if one of them does not exist. */
export function isAround(folder: string, inner: string): boolean {
  const outer = statOrNull(folder);
  if (outer === null || statOrNull(inner) === null) return false;
  for (let path = realpathSync(inner); ; path = dirname(path)) {
    const stats = statOrNull(path);
    if (stats !== null && stats.dev === outer.dev && stats.ino === outer.ino) return true;
    if (path === dirname(path)) return false;
  }
}

function statOrNull(path: string): { readonly dev: bigint; readonly ino: bigint } | null {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return null;
  }
}
