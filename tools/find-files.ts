import { existsSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** The top of the repository. */
export const repositoryRoot: string = join(import.meta.dirname, "..");

const ignoredFolders = new Set(["node_modules", "dist", ".git", ".turbo", "coverage"]);

/** Every file below `folder` whose name ends with one of `endings`, as sorted paths relative to `root` with `/`. */
export function findFiles(root: string, folder: string, endings: readonly string[]): string[] {
  const top = join(root, folder);
  if (!existsSync(top)) return [];
  const found: string[] = [];
  for (const item of readdirSync(top, { withFileTypes: true })) {
    if (ignoredFolders.has(item.name)) continue;
    const path = join(top, item.name);
    const named = relative(root, path).split(sep).join("/");
    if (item.isDirectory()) found.push(...findFiles(root, named, endings));
    else if (endings.some((ending) => item.name.endsWith(ending))) found.push(named);
  }
  return found.toSorted();
}

/** The folders that hold a package.json one level below `packages`, `apps` and `examples`, relative to `root`. */
export function findPackages(root: string, groups: readonly string[] = ["packages", "apps"]): string[] {
  return groups
    .flatMap((group) =>
      existsSync(join(root, group)) ? readdirSync(join(root, group)).map((name) => `${group}/${name}`) : [],
    )
    .filter((folder) => existsSync(join(root, folder, "package.json")))
    .toSorted();
}

/** The language of a source, as the parser names it. */
export function langOf(path: string): "ts" | "tsx" {
  return path.endsWith(".tsx") ? "tsx" : "ts";
}
