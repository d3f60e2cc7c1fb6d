/**
 * Returns a path below a folder without the folder, and any other path as it is, with `.` and `..` resolved. Both are
 * texts: no file is looked at, and a link has another path than its target.
 */
export function shortPath(path: string, folder: string | null): string {
  if (path.length > mostCharacters) return path;
  const base = folder === null ? null : resolved(folder);
  const whole = resolved(path);
  if (base === null || base === "" || base === "/") return whole;
  return whole.startsWith(`${base}/`) ? whole.slice(base.length + 1) : whole;
}

/** A longer text is no path of a file. */
const mostCharacters = 4096;

function resolved(path: string): string {
  const parts: string[] = [];
  for (const part of path.replaceAll("\\", "/").split("/")) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else parts.push(part);
  }
  return `${/^[/\\]/.test(path) ? "/" : ""}${parts.join("/")}`;
}
