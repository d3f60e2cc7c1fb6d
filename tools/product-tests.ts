import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { parseSync } from "oxc-parser";
import { isSyntaxNode, textOf, walkSyntax } from "./syntax-tree.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

/** A folder of tests, and where a test there enters the product. */
export interface ProductDoor {
  /** Folder of tests. */
  readonly tests: string;
  /** A test has to reach one of these: files as paths from the root, packages by name. */
  readonly entries: readonly string[];
  /** Files behind the door that a test may use all the same. */
  readonly allowed?: readonly string[];
}

const commandLine = ["apps/cli/src/run-cli.ts", "apps/cli/bin/throughline.js"];
const packages = [
  "session",
  "store-memory",
  "store-jsonl",
  "store-sqlite",
  "store-postgres",
  "transfer",
  "openclaw-compat",
  "tools",
  "adapter-claude-agent-sdk",
];

/** Where the product is entered: the command line, the facade, the stores, and the packages that programs call directly. */
export const productDoors: readonly ProductDoor[] = [
  {
    tests: "apps/cli/test",
    entries: commandLine,
    // The first opens the store of a `--store` URL, which tests fill before they run a command; the second lists the
    // commands for tests that run all of them.
    allowed: ["apps/cli/src/open-store.ts", "apps/cli/src/command-table.ts"],
  },
  ...packages.map((name) => ({ tests: `packages/${name}/test`, entries: [`@throughline/${name}`] })),
  { tests: "apps/server/test", entries: ["@throughline/server"] },
  // Tests over several stores, and against other programs.
  { tests: "tools/test", entries: [...commandLine, ...packages.map((name) => `@throughline/${name}`)] },
];

/** Each store runs these cases through its public door. */
const kitFolder = "packages/store-conformance/src/";

/** How a file of tests meets the product. */
export type TestPath =
  | { readonly runsProduct: true }
  /** `reason`: why its tests do not count as tests of the product. */
  | { readonly runsProduct: false; readonly reason: string };

/**
 * Tells whether the tests of `path` run the product: the file stands in the folder of a door, it reaches that door itself
 * or by its helpers and child processes, and none of these imports a module behind a door. Imports of types do not count.
 */
export function readTestPath(root: string, path: string): TestPath {
  if (path.startsWith(kitFolder)) return { runsProduct: true };
  const door = productDoors.find(({ tests }) => path.startsWith(`${tests}/`));
  if (door === undefined) return { runsProduct: false, reason: `${dirname(path)} is no folder of product tests` };
  const seen = new Set([path]);
  const waiting = [path];
  let reached = false;
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const target of readTargets(root, at)) {
      const folder = /^(?:packages|apps)\/[^/]+(?=\/src\/)/.exec(target)?.[0];
      const isEntry = door.entries.some((entry) => target === entry || target.startsWith(`${entry}/`));
      const isPublic = folder !== undefined && readPublicFiles(root, folder).has(target);
      if (isEntry) reached = true;
      else if (isPublic) reached ||= door.entries.includes(readPackage(root, folder).name ?? "");
      else if (folder !== undefined && !(door.allowed ?? []).includes(target))
        return { runsProduct: false, reason: `${at === path ? "" : `${at} `}imports ${target}` };
      else if (folder === undefined && !target.startsWith("@") && !seen.has(target)) {
        seen.add(target);
        waiting.push(target);
      }
    }
  }
  return reached ? { runsProduct: true } : { runsProduct: false, reason: "never enters the product" };
}

interface PackageFile {
  readonly name?: string;
  readonly exports?: Readonly<Record<string, unknown>>;
}

function readPackage(root: string, folder: string): PackageFile {
  const path = join(root, folder, "package.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as PackageFile) : {};
}

/** The source files that a package exports, as paths from the root. */
function readPublicFiles(root: string, folder: string): ReadonlySet<string> {
  const sources = Object.values(readPackage(root, folder).exports ?? {}).map((entry) =>
    typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>)["@throughline/source"] : null,
  );
  return new Set(sources.filter((source) => typeof source === "string").map((source) => join(folder, source)));
}

/** What a file of tests uses: packages it imports, by name, and files it names, as paths from the root. */
function readTargets(root: string, path: string): ReadonlySet<string> {
  const targets = new Set<string>();
  walkSyntax(parseSync(path, readFileSync(join(root, path), "utf8"), { lang: "ts" }).program, (node) => {
    if (isTypeOnly(node)) return false;
    const imported = textOf(node["source"], false);
    if (imported?.startsWith("@throughline/") === true) targets.add(imported);
    const text = textOf(node, false);
    // Any string may name a file: tests start some as processes of their own.
    if (text === null || text.length > 300 || !/\.[cm]?[jt]s$/.test(text)) return true;
    const full = join(root, dirname(path), text);
    const named = relative(root, full).split(sep).join("/");
    if (!named.startsWith("..") && existsSync(full)) targets.add(named);
    return true;
  });
  return targets;
}

function isTypeOnly(node: SyntaxNode): boolean {
  if (node.type !== "ImportDeclaration" && !node.type.startsWith("Export")) return false;
  if (node["importKind"] === "type" || node["exportKind"] === "type") return true;
  const specifiers = node["specifiers"];
  return (
    node.type === "ImportDeclaration" &&
    Array.isArray(specifiers) &&
    specifiers.length > 0 &&
    specifiers.every((specifier) => isSyntaxNode(specifier) && specifier["importKind"] === "type")
  );
}
