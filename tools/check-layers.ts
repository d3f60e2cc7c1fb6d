import { readFileSync, readdirSync } from "node:fs";
import { join, matchesGlob, posix } from "node:path";
import process from "node:process";
import { countLevels, findCircles } from "./file-circles.ts";
import { findFiles, findPackages, repositoryRoot } from "./find-files.ts";
import {
  allowedEntries,
  ignoredEntries,
  importAllowances,
  layerOf,
  layerTable,
  levelLimits,
  limits,
  longFiles,
  matchesName,
  rootExportAllowances,
  worldAllowances,
} from "./layer-table.ts";
import type { LayerRow, LongFile } from "./layer-table.ts";
import { readSourceFacts } from "./source-facts.ts";
import type { SourceFacts } from "./source-facts.ts";

const scope = "@throughline/";

/** The part of a package.json that is checked. */
interface Manifest {
  readonly name: string;
  readonly bin?: object;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** What a package may import. A program is published as a bundle, which holds what it needs for development. */
function declaredIn({ bin, dependencies, optionalDependencies, devDependencies }: Manifest): readonly string[] {
  return Object.keys({ ...dependencies, ...optionalDependencies, ...(bin === undefined ? {} : devDependencies) });
}

/** A package under check. */
interface CheckedPackage {
  readonly folder: string;
  readonly name: string;
  readonly row: LayerRow;
  readonly manifest: Manifest;
}

/** One rule broken: `file:line message`. */
type Violation = string;

/** `@throughline/core/node` gives `@throughline/core`, `pg/lib/x` gives `pg`. */
function packageOfSpecifier(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** Why `importer` may not import the package of ours called `name`; null when it may. */
export function forbiddenImport(importer: string, name: string): string | null {
  const from = layerOf(importer);
  // An app that another one loads is named as a package is.
  const to = layerOf(name) ?? layerTable.find((row) => row.name === `apps/${name}`);
  if (!from) return `${importer} is not in the layer table`;
  if (!to) return `${scope}${name} is not in the layer table`;
  if (importer === name) return null;
  if (to.layer >= from.layer) {
    const direction = to.layer === from.layer ? "the same layer" : "a higher layer";
    return `${importer} (layer ${from.layer}) imports ${name} of ${direction}`;
  }
  const never = from.never?.find((pattern) => matchesName(pattern, name));
  return never ? `${importer} must never import ${name}` : null;
}

function checkManifest({ folder, name, row, manifest }: CheckedPackage): Violation[] {
  const at = `${folder}/package.json:1`;
  const declared = declaredIn(manifest);
  const required = Object.keys(manifest.peerDependencies ?? {}).filter(
    (peer) => !manifest.peerDependenciesMeta?.[peer]?.optional,
  );
  const ours = declared.filter((dependency) => dependency.startsWith(scope));
  // Whoever installs a program gets its bundle, so only what is installed beside it counts.
  const installed = manifest.bin === undefined ? declared : declaredIn({ ...manifest, devDependencies: {} });
  const foreign = [...installed, ...required].filter((dependency) => !dependency.startsWith(scope));
  const most = row.name.startsWith("apps/") ? limits.appDependencies : limits.packageDependencies;
  const violations = ours
    .map((dependency) => forbiddenImport(name, dependency.slice(scope.length)))
    .filter((reason) => reason !== null)
    .map((reason) => `${at} ${reason}`);
  if (foreign.length > most) violations.push(`${at} ${foreign.length} dependencies besides ours; at most ${most}`);
  return violations;
}

function checkFolder({ folder }: CheckedPackage, entries: readonly string[]): Violation[] {
  const allowed = folder.startsWith("apps/") ? allowedEntries.apps : allowedEntries.packages;
  return entries
    .filter((entry) => !allowed.has(entry) && !ignoredEntries.has(entry))
    .map((entry) => `${folder}/${entry}:1 does not belong into a package folder`);
}

function checkImports({ folder, name, manifest }: CheckedPackage, path: string, facts: SourceFacts): Violation[] {
  const declared = new Set([...declaredIn(manifest), ...Object.keys(manifest.peerDependencies ?? {})]);
  return facts.imports.flatMap(({ name: specifier, line }) => {
    if (specifier.startsWith("node:")) return [];
    if (specifier.startsWith(".")) {
      const inside = posix.join(posix.dirname(path), specifier).startsWith(`${folder}/src/`);
      return inside ? [] : [`${path}:${line} ${specifier} leaves the package; import it by its name`];
    }
    const wanted = packageOfSpecifier(specifier);
    const found: string[] = [];
    const ours = wanted.startsWith(scope) && wanted !== manifest.name;
    const reason = ours ? forbiddenImport(name, wanted.slice(scope.length)) : null;
    if (reason) found.push(reason);
    // The root's development dependencies are reachable from every package, so an undeclared import would run here
    // and fail for whoever installs the package.
    if (!declared.has(wanted) && wanted !== manifest.name) found.push(`${wanted} is imported but not a dependency`);
    const fence = importAllowances.find((allowance) => allowance.module === wanted);
    if (fence && !fence.paths.some((pattern) => matchesGlob(path, pattern))) {
      found.push(`${wanted} may not be imported here: ${fence.reason}`);
    }
    return found.map((message) => `${path}:${line} ${message}`);
  });
}

function checkShape(
  { folder, name }: CheckedPackage,
  path: string,
  facts: SourceFacts,
  long: readonly LongFile[],
): Violation[] {
  const violations = [
    ...facts.syntaxErrors.map(({ name, line }) => `${path}:${line} syntax error: ${name}`),
    ...facts.starExports.map(({ line }) => `${path}:${line} export * hides what is public; name the exports`),
    ...facts.defaultExports.map(({ line }) => `${path}:${line} default export; export it by name`),
    ...facts.unexplainedAssertions.map(
      ({ line }) => `${path}:${line} "as unknown as" without its reason in a comment on this line or the one before`,
    ),
  ];
  const isLong = long.some((file) => file.path === path);
  const mostLines = isLong ? limits.longFileLines : limits.fileLines;
  if (facts.lineCount > mostLines)
    violations.push(`${path}:${facts.lineCount} ${facts.lineCount} lines; at most ${mostLines}`);
  if (isLong && facts.lineCount <= limits.fileLines)
    violations.push(`${path}:1 needs no reason to be long; remove its row from longFiles`);
  const allowance = rootExportAllowances.find((row) => row.name === name);
  const most = allowance?.rootExports ?? limits.rootExports;
  if (path === `${folder}/src/index.ts` && facts.valueExports.length > most) {
    violations.push(`${path}:1 ${facts.valueExports.length} exports; at most ${most}`);
  }
  return violations;
}

/** Checks uses of the world over all files at once, because an allowance may say in how many files. */
function checkWorld(files: ReadonlyMap<string, SourceFacts>): Violation[] {
  const filesOf = new Map<string, Set<string>>();
  return [...files].flatMap(([path, facts]) =>
    facts.worldUses.flatMap(({ name, line }) => {
      const allowance = worldAllowances.find(
        ({ path: pattern, uses }) => matchesGlob(path, pattern) && (!uses || uses.includes(name)),
      );
      if (!allowance) return [`${path}:${line} ${name} outside the ports; take it from core's ports`];
      if (allowance.maxFiles === undefined) return [];
      const users = filesOf.get(allowance.path) ?? new Set();
      filesOf.set(allowance.path, users.add(path));
      if (users.size <= allowance.maxFiles) return [];
      return [`${path}:${line} ${name} in more than ${allowance.maxFiles} files of ${allowance.path}`];
    }),
  );
}

/** Files that import each other, types included: what they share belongs in a file of its own. And towers of files. */
function checkCircles(files: ReadonlyMap<string, SourceFacts>): Violation[] {
  const edges = new Map(
    [...files].map(([path, facts]) => {
      const inside = facts.imports.filter(({ name }) => name.startsWith("."));
      return [path, inside.map(({ name }) => posix.join(posix.dirname(path), name))] as const;
    }),
  );
  const circles = findCircles(edges);
  if (circles.length > 0)
    return circles.map(([first, ...others]) => {
      return `${first}:1 imports itself${others.length === 0 ? "" : ` by way of ${others.join(", ")}`}`;
    });
  return levelLimits.flatMap(({ name, levels }) => {
    const folder = `packages/${name}/src/`;
    const found = countLevels(new Map([...edges].filter(([path]) => path.startsWith(folder))));
    return found <= levels
      ? []
      : [`packages/${name}:1 ${found} levels of files that import the next; at most ${levels}`];
  });
}

/** Every broken rule of the layers and of the shape of packages below `root`. */
export function checkLayers(root: string, long: readonly LongFile[] = longFiles): Violation[] {
  const violations: Violation[] = [];
  const files = new Map<string, SourceFacts>();
  for (const folder of findPackages(root)) {
    const name = folder.startsWith("packages/") ? folder.slice("packages/".length) : folder;
    const row = layerOf(name);
    if (!row) {
      violations.push(`${folder}/package.json:1 ${name} is not in the layer table`);
      continue;
    }
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
    const checked = { folder, name, row, manifest };
    violations.push(...checkManifest(checked), ...checkFolder(checked, readdirSync(join(root, folder))));
    for (const path of findFiles(root, `${folder}/src`, [".ts", ".tsx"])) {
      const facts = readSourceFacts(path, readFileSync(join(root, path), "utf8"));
      files.set(path, facts);
      violations.push(...checkImports(checked, path, facts), ...checkShape(checked, path, facts, long));
    }
  }
  return [...violations, ...checkWorld(files), ...checkCircles(files)].toSorted();
}

if (import.meta.main) {
  const violations = checkLayers(repositoryRoot);
  for (const violation of violations) process.stdout.write(`${violation}\n`);
  process.stdout.write(`layers: ${violations.length === 0 ? "no violations" : `${violations.length} violations`}\n`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
