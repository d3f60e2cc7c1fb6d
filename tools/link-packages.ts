import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { findPackages } from "./find-files.ts";

/**
 * Gives `folder` the `node_modules` that a user would have there after installing: every package of the workspace, and what the
 * package in `packageFolder` depends on.
 */
export function linkPackages(root: string, packageFolder: string, folder: string): void {
  const links = new Map<string, string>();
  const installed = join(root, packageFolder, "node_modules");
  for (const name of existsSync(installed) ? readdirSync(installed) : []) {
    if (name.startsWith(".")) continue;
    const path = join(installed, name);
    if (!name.startsWith("@")) links.set(name, path);
    else for (const inner of readdirSync(path)) links.set(`${name}/${inner}`, join(path, inner));
  }
  for (const path of findPackages(root)) {
    const { name } = JSON.parse(readFileSync(join(root, path, "package.json"), "utf8")) as { readonly name: string };
    links.set(name, join(root, path));
  }
  for (const [name, target] of links) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(target, link, "junction");
  }
}
