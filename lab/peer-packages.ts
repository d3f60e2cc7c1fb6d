import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/**
 * Installs packages of other projects into a folder, from the npm registry and without install scripts, and copies
 * programs beside them that use them. False without a registry.
 */
export function installPeers(
  folder: string,
  packages: Readonly<Record<string, string>>,
  programs: string | readonly string[],
  overrides: Readonly<Record<string, string>> = {},
): boolean {
  mkdirSync(folder, { recursive: true });
  for (const program of [programs].flat()) copyFileSync(program, join(folder, basename(program)));
  if (Object.keys(packages).every((name) => existsSync(join(folder, "node_modules", name)))) return true;
  const manifest = { name: "peers", private: true, type: "module", dependencies: packages, overrides };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  const options = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
  return spawnSync("npm", options, { cwd: folder, stdio: "ignore" }).status === 0;
}
