/**
 * Writes paths on one line, grouped by folder: `Files: packages/tui/src/ components/text.ts*, components/box.ts;
 * docs/theme.md`. A path keeps its last folder, because many files share a name. `*` marks a changed file. Returns null
 * when no path fits.
 *
 * @param paths best first
 * @param seen text that the model receives anyway; a path whose end occurs in it is left out
 */
export function pathLine(
  paths: readonly string[],
  modified: ReadonlySet<string>,
  seen: string,
  roomTokens: number,
  countText: (text: string) => number,
): string | null {
  const groups = new Map<string, string[]>();
  const chosen = new Set<string>();
  let tokens = countText(`${heading}\n`);
  for (const path of paths) {
    const { folder, end } = splitPath(path);
    // Tools name the same file by relative and absolute paths, so only the ends are compared.
    if (chosen.has(end) || seen.includes(end)) continue;
    const isKnownFolder = groups.has(folder);
    const item = modified.has(path) ? `${end}*` : end;
    const cost = countText(`, ${item}`) + (isKnownFolder ? 0 : countText(`; ${folder}`));
    if (tokens + cost > roomTokens) continue;
    tokens += cost;
    chosen.add(end);
    if (isKnownFolder) groups.get(folder)?.push(item);
    else groups.set(folder, [item]);
  }
  if (groups.size === 0) return null;
  const lists = [...groups].map(([folder, ends]) => (folder === "" ? "" : `${folder} `) + ends.join(", "));
  return heading + lists.join("; ");
}

const heading = "Files (* changed): ";

/** Splits off the last two names, which identify a file well enough in a summary. */
function splitPath(path: string): { readonly folder: string; readonly end: string } {
  const names = path.split("/");
  const at = Math.max(0, names.length - 2);
  const folder = names.slice(0, at).join("/");
  return { folder: folder === "" && !(at > 0) ? "" : `${folder}/`, end: names.slice(at).join("/") };
}
