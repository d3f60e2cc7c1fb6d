import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import process from "node:process";
import { findPackages } from "../find-files.ts";

/** An entry point of a published package. */
export interface EntryPoint {
  readonly package: string;
  /** As it is imported, without the scope: `core`, `core/store`. */
  readonly name: string;
  /** The declaration file that it names. */
  readonly path: string;
}

/** The declarations of all packages, as a consumer of the built ones reads them. */
export interface Declarations {
  /** Holds one folder for each package; whoever asked for it removes it. */
  readonly folder: string;
  /** The compiler configuration that resolves the packages to these declarations. */
  readonly configPath: string;
  /** Of the published packages, without those for packages of ours alone. */
  readonly entryPoints: readonly EntryPoint[];
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

const sourceCondition = "@throughline/source";
const scope = "@throughline/";

/**
 * Writes the declarations of every package below `root`, in one program and without a check of types: `tsc -b` does that.
 *
 * @throws Error when the compiler fails
 */
export function writeDeclarations(root: string): Declarations {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "throughline-api-docs-")));
  const emitConfigPath = join(folder, "tsconfig.emit.json");
  const base = join(root, "tsconfig.base.json");
  const typeRoots = [join(root, "node_modules/@types")];
  const emitOptions = {
    noEmit: false,
    noCheck: true,
    incremental: false,
    tsBuildInfoFile: null,
    emitDeclarationOnly: true,
    rootDir: join(root, "packages"),
    outDir: folder,
    typeRoots,
  };
  writeJson(emitConfigPath, { extends: base, compilerOptions: emitOptions, include: [join(root, "packages/*/src")] });
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, "-p", emitConfigPath], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`no declarations were written: ${stdout}${stderr}`);
  const entryPoints: EntryPoint[] = [];
  const paths: Record<string, string[]> = {};
  for (const packageFolder of findPackages(root, ["packages"])) {
    const manifest = JSON.parse(readFileSync(join(root, packageFolder, "package.json"), "utf8")) as Manifest;
    const emitted = join(folder, posix.basename(packageFolder));
    // Types of third parties are looked up from the package that names them.
    const modules = join(root, packageFolder, "node_modules");
    if (existsSync(modules)) symlinkSync(modules, join(emitted, "node_modules"), "junction");
    for (const [entry, target] of Object.entries(manifest.exports ?? {})) {
      const source = typeof target === "string" ? undefined : target[sourceCondition];
      if (source === undefined) continue;
      const path = join(emitted, source.replace(/\.ts$/, ".d.ts"));
      const imported = posix.join(manifest.name, entry);
      paths[imported] = [path];
      if (manifest.private === true || entry.startsWith("./internal")) continue;
      entryPoints.push({ package: manifest.name, name: imported.slice(scope.length), path });
    }
  }
  const configPath = join(folder, "tsconfig.json");
  // TypeScript 6 reads declarations alone; what belongs to the sources is not asked of it.
  const readOptions = { customConditions: [], isolatedDeclarations: false, incremental: false, tsBuildInfoFile: null };
  writeJson(configPath, {
    extends: base,
    compilerOptions: { ...readOptions, paths, typeRoots },
    files: entryPoints.map(({ path }) => path),
  });
  return { folder, configPath, entryPoints };
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, JSON.stringify(value, null, 2));
}
