import { readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import process from "node:process";
import { parseSync } from "oxc-parser";
import { findPackages, repositoryRoot } from "./find-files.ts";
import { isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";

/** A name that users import from an entry point. */
export interface PublicExport {
  readonly package: string;
  /** As it is imported: `.`, `./node`. */
  readonly entry: string;
  readonly name: string;
  readonly kind: "class" | "constant" | "function" | "interface" | "type";
  /** The first sentence of its docstring; null without a docstring. */
  readonly summary: string | null;
  /** The file that declares it, and the line. */
  readonly at: string;
}

/** What one module declares and passes on. */
interface ModuleExports {
  /** Declarations of the module, by their own names. */
  readonly declared: ReadonlyMap<string, Omit<PublicExport, "package" | "entry" | "name">>;
  /** By exported name: the module it comes from, null for this one, and its name there. */
  readonly exported: ReadonlyMap<string, { readonly from: string | null; readonly name: string }>;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

const documentPath = "docs/internal/public-exports.md";
const sourceCondition = "@throughline/source";

const kinds: Readonly<Record<string, PublicExport["kind"]>> = {
  ClassDeclaration: "class",
  FunctionDeclaration: "function",
  TSDeclareFunction: "function",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
  VariableDeclaration: "constant",
};

/** The first sentence of a block comment; null when it says nothing before its first tag. */
export function firstSentence(comment: string): string | null {
  const lines = comment.split("\n").map((line) => line.trim().replace(/^\* ?/, "").trim());
  const tag = lines.findIndex((line) => line.startsWith("@"));
  const text = (tag < 0 ? lines : lines.slice(0, tag)).join(" ").trim();
  if (text === "") return null;
  const [inline = ""] = text.split(" @");
  const end = inline.split(/(?<=[.:]) /, 1)[0] ?? inline;
  return end.replace(/:$/, ".");
}

function namesOf(node: SyntaxNode): readonly string[] {
  const declared = node.type === "VariableDeclaration" ? (node["declarations"] as readonly SyntaxNode[]) : [node];
  return declared.flatMap(({ id }) => (isSyntaxNode(id) && id.type === "Identifier" ? [String(id["name"])] : []));
}

function readModule(root: string, path: string): ModuleExports {
  const text = readFileSync(join(root, path), "utf8");
  const { program, module, comments } = parseSync(path, text, { lang: "ts", sourceType: "module" });
  const declared = new Map<string, Omit<PublicExport, "package" | "entry" | "name">>();
  // The parser's own types of nodes are left out, as in `syntax-tree.ts`.
  for (const statement of program.body as unknown as readonly SyntaxNode[]) {
    const node = statement.type === "ExportNamedDeclaration" ? statement["declaration"] : statement;
    const kind = isSyntaxNode(node) ? kinds[node.type] : undefined;
    if (!isSyntaxNode(node) || kind === undefined) continue;
    const comment = comments.findLast(({ end }) => end <= statement.start);
    const isDoc = comment?.type === "Block" && comment.value.startsWith("*");
    const isBeside = comment !== undefined && text.slice(comment.end, statement.start).trim() === "";
    const summary = isDoc && isBeside ? firstSentence(comment.value.slice(1)) : null;
    const at = `${path}:${text.slice(0, statement.start).split("\n").length}`;
    // Of overloads the first with a docstring counts.
    for (const name of namesOf(node)) {
      if ((declared.get(name)?.summary ?? null) === null) declared.set(name, { kind, summary, at });
    }
  }
  const imports = new Map(
    module.staticImports.flatMap((item) =>
      item.entries.map((entry) => {
        const name = entry.importName.name ?? entry.localName.value;
        return [entry.localName.value, { from: item.moduleRequest.value, name }] as const;
      }),
    ),
  );
  const exported = new Map<string, { readonly from: string | null; readonly name: string }>();
  for (const entry of module.staticExports.flatMap((item) => item.entries)) {
    const name = entry.exportName.name ?? "";
    const local = entry.importName.name ?? entry.localName.name ?? name;
    const from = entry.moduleRequest?.value ?? null;
    exported.set(name, from === null ? (imports.get(local) ?? { from, name: local }) : { from, name: local });
  }
  return { declared, exported };
}

/** Every name that the published packages below `root` export, without what is only for packages of ours. */
export function readPublicExports(root: string): readonly PublicExport[] {
  const modules = new Map<string, ModuleExports>();
  const entries = new Map<string, string>();
  const open = (path: string): ModuleExports => {
    const found = modules.get(path) ?? readModule(root, path);
    modules.set(path, found);
    return found;
  };
  const shown: (readonly [string, string, string])[] = [];
  for (const folder of findPackages(root).filter((name) => name.startsWith("packages/"))) {
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
    for (const [entry, target] of Object.entries(manifest.exports ?? {})) {
      const source = typeof target === "string" ? undefined : target[sourceCondition];
      if (source === undefined) continue;
      const path = posix.join(folder, source);
      entries.set(posix.join(manifest.name, entry), path);
      if (entry !== "./internal" && manifest.private !== true) shown.push([manifest.name, entry, path]);
    }
  }
  const find = (path: string, name: string): Omit<PublicExport, "package" | "entry" | "name"> => {
    const { declared, exported } = open(path);
    const found = exported.get(name);
    if (found === undefined) throw new Error(`${path} does not export ${name}`);
    const { from } = found;
    const next = from?.startsWith(".") === true ? posix.join(posix.dirname(path), from) : entries.get(from ?? "");
    if (next !== undefined) return find(next, found.name);
    const own = from === null ? declared.get(found.name) : undefined;
    if (own === undefined) throw new Error(`${path} exports ${name}, and its declaration is not found`);
    return own;
  };
  return shown
    .flatMap(([name, entry, path]) =>
      [...open(path).exported.keys()].map((exportName) => ({
        package: name,
        entry,
        name: exportName,
        ...find(path, exportName),
      })),
    )
    .toSorted((a, b) => order(a, b));
}

function order(a: PublicExport, b: PublicExport): number {
  const [one, other] = [a, b].map((item) => [item.package, item.entry, item.name.toLowerCase(), item.name].join("\n"));
  return String(one) < String(other) ? -1 : 1;
}

/** How many names each package exports, most first. */
export function countExports(exports: readonly PublicExport[]): readonly (readonly [string, number])[] {
  const byPackage = Map.groupBy(exports, (item) => item.package);
  return [...byPackage].map(([name, items]) => [name, items.length] as const).toSorted(([, a], [, b]) => b - a);
}

/** The document of these exports. */
export function exportsDocument(exports: readonly PublicExport[]): string {
  const cell = (text: string): string => text.replaceAll("|", "\\|");
  const counts = countExports(exports).map(([name, count]) => `| ${name} | ${count} |`);
  const rows = exports.map(
    ({ package: name, entry, name: exported, kind, summary }) =>
      `| ${posix.join(name, entry)} | \`${exported}\` | ${kind} | ${cell(summary ?? "")} |`,
  );
  return [
    "# Public exports",
    "",
    "Written by `node tools/public-exports.ts --write`; the check fails when it differs from the sources, or when an export has no docstring. Entry points named `/internal` are not public.",
    "",
    "| package | exports |",
    "| --- | --: |",
    ...counts,
    `| all | ${exports.length} |`,
    "",
    "| entry point | name | kind | contract |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

/** What is wrong with these exports and the document that lists them. */
export function exportProblems(exports: readonly PublicExport[], document: string): readonly string[] {
  const silent = exports.filter(({ summary }) => summary === null);
  return [
    ...silent.map(({ at, name }) => `${at} ${name} is public and has no docstring`),
    ...(document === exportsDocument(exports)
      ? []
      : [`${documentPath}:1 differs from the sources; run node tools/public-exports.ts --write`]),
  ];
}

if (import.meta.main) {
  const exports = readPublicExports(repositoryRoot);
  const path = join(repositoryRoot, documentPath);
  if (process.argv.includes("--write")) writeFileSync(path, exportsDocument(exports));
  const problems = exportProblems(exports, readFileSync(path, "utf8"));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  process.stdout.write(
    `exports: ${exports.length}, ${problems.length === 0 ? "no problems" : `${problems.length} problems`}\n`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
}
