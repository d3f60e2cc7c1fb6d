import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { repositoryRoot } from "./find-files.ts";

/**
 * The compiler configuration that turns the sources of the package in `folder` into `dist`. It is made here and not kept
 * in the package: it is the same for all, and a package folder holds nothing but its own matter.
 */
export function buildConfig(folder: string, configFolder: string): object {
  const to = (path: string): string => relative(configFolder, path).replaceAll("\\", "/");
  return {
    extends: to(join(repositoryRoot, "tsconfig.base.json")),
    compilerOptions: {
      noEmit: false,
      incremental: false,
      // Neighbors are read as an installed package is: through their built types.
      customConditions: [],
      rootDir: to(join(folder, "src")),
      outDir: to(join(folder, "dist")),
      declarationMap: true,
      sourceMap: true,
    },
    include: [to(join(folder, "src"))],
  };
}

/** Builds the package in `folder`; gives the compiler's exit code. */
export function buildPackage(folder: string): number {
  const configFolder = join(folder, "node_modules/.cache");
  const configPath = join(configFolder, "tsconfig.build.json");
  mkdirSync(configFolder, { recursive: true });
  writeFileSync(configPath, JSON.stringify(buildConfig(folder, configFolder), null, 2));
  // A file that was renamed must not live on in what is published.
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  const compiler = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  return spawnSync(process.execPath, [compiler, "-p", configPath], { stdio: "inherit" }).status ?? 1;
}

if (import.meta.main) process.exitCode = buildPackage(process.cwd());
