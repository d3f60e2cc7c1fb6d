import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import process from "node:process";
import { type EcmaScriptModule, parseSync } from "oxc-parser";
import { findPackages, repositoryRoot } from "./find-files.ts";
import { isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";

/** A name that users import from an entry point. */
export interface PublicExport {
  readonly package: string;
  /** As it is imported: `.`, `./node`. */
  readonly entry: string;
  /** A member of an exported namespace stands behind its name: `sessions.open`. */
  readonly name: string;
  readonly kind: "class" | "constant" | "function" | "interface" | "type";
  /** The first sentence of its docstring; null without a docstring. */
  readonly summary: string | null;
  /** The file that declares it, and the line. */
  readonly at: string;
}

interface ExportOrigin {
  readonly from: string | null;
  readonly name: string | null;
}

/** What one module declares and passes on. */
interface ModuleExports {
  /** Declarations of the module, by their own names. */
  readonly declared: ReadonlyMap<string, Omit<PublicExport, "package" | "entry" | "name">>;
  /** By exported name: the module it comes from, null for this one, and its name there; null for the whole module. */
  readonly exported: ReadonlyMap<string, ExportOrigin>;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

/** How many public names a user has to choose from, at most. It was 320 before files, test models and synchronization. */
export const mostPublicNames = 350;

const documentPath = "docs/stability.md";
const heading = "## Public names";
const scope = "@throughline/";

/** Names that several entry points of one package export: one program imports one of them. */
const repeatedNames: Readonly<Record<string, readonly string[]>> = {
  "@throughline/history": ["recordFromReply", "recordsFromMessages"],
  "@throughline/tokens": ["packedVocabulary"],
};

/** This package has the names of OpenClaw's functions, which may be names of ours as well. */
const foreignNames = "@throughline/openclaw-compat";

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
  return { declared, exported: readExports(module) };
}

/** What a module exports, by the module that each name comes from. */
function readExports(module: EcmaScriptModule): ReadonlyMap<string, ExportOrigin> {
  const imports = new Map(
    module.staticImports.flatMap((item) =>
      item.entries.map((entry) => {
        const name = entry.importName.name ?? entry.localName.value;
        return [entry.localName.value, { from: item.moduleRequest.value, name }] as const;
      }),
    ),
  );
  const exported = new Map<string, ExportOrigin>();
  for (const entry of module.staticExports.flatMap((item) => item.entries)) {
    const name = entry.exportName.name ?? "";
    const local = entry.importName.name ?? entry.localName.name ?? name;
    const from = entry.moduleRequest?.value ?? null;
    if (entry.importName.kind === "All") exported.set(name, { from, name: null });
    else exported.set(name, from === null ? (imports.get(local) ?? { from, name: local }) : { from, name: local });
  }
  return exported;
}

/** The modules of the packages below `root`, read when they are asked for. */
class Modules {
  /** The sources of entry points, by the name a program imports. */
  readonly entries = new Map<string, string>();
  readonly #read = new Map<string, ModuleExports>();
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  open(path: string): ModuleExports {
    const found = this.#read.get(path) ?? readModule(this.#root, path);
    this.#read.set(path, found);
    return found;
  }

  /** The path of the module that a module imports by this text; null outside the packages. */
  #resolve(path: string, from: string | null): string | null {
    if (from?.startsWith(".") === true) return posix.join(posix.dirname(path), from);
    return this.entries.get(from ?? "") ?? null;
  }

  /** The declarations behind an exported name: one, or one for each member of a namespace. */
  find(path: string, name: string): readonly Pick<PublicExport, "name" | "kind" | "summary" | "at">[] {
    const { declared, exported } = this.open(path);
    const origin = exported.get(name);
    if (origin === undefined) throw new Error(`${path} does not export ${name}`);
    const next = this.#resolve(path, origin.from);
    if (origin.name === null && next !== null) {
      const members = [...this.open(next).exported.keys()].flatMap((member) => this.find(next, member));
      return members.map((member) => ({ ...member, name: `${name}.${member.name}` }));
    }
    const target = origin.name ?? "";
    if (next !== null) return this.find(next, target).map((found) => ({ ...found, name }));
    const own = origin.from === null ? declared.get(target) : undefined;
    if (own === undefined) throw new Error(`${path} exports ${name}, and its declaration is not found`);
    return [{ ...own, name }];
  }
}

/** Every name that the published packages below `root` export, without what is only for packages of ours. */
export function readPublicExports(root: string): readonly PublicExport[] {
  const modules = new Modules(root);
  const shown: (readonly [string, string, string])[] = [];
  for (const folder of findPackages(root).filter((name) => name.startsWith("packages/"))) {
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
    for (const [entry, target] of Object.entries(manifest.exports ?? {})) {
      const source = typeof target === "string" ? undefined : target[sourceCondition];
      if (source === undefined) continue;
      const path = posix.join(folder, source);
      modules.entries.set(posix.join(manifest.name, entry), path);
      if (!entry.startsWith("./internal") && manifest.private !== true) shown.push([manifest.name, entry, path]);
    }
  }
  return shown
    .flatMap(([name, entry, path]) =>
      [...modules.open(path).exported.keys()].flatMap((exported) =>
        modules.find(path, exported).map((found) => ({ package: name, entry, ...found })),
      ),
    )
    .toSorted(order);
}

function order(a: PublicExport, b: PublicExport): number {
  const [one, other] = [a, b].map((item) => [item.package, item.entry, item.name.toLowerCase(), item.name].join("\n"));
  return String(one) < String(other) ? -1 : 1;
}

/** An entry point as the page names it: `core`, `history/anthropic`. */
function entryPointOf({ package: name, entry }: Pick<PublicExport, "package" | "entry">): string {
  return posix.join(name, entry).replace(scope, "");
}

/** The rows of the section on public names: the entry point, the reason, and the names. */
function readListed(document: string): readonly (readonly [entryPoint: string, reason: string, name: string])[] {
  const section = document.split(`${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| ---"));
  return rows.flatMap((row) => {
    const [, entryPoint = "", reason = "", names = ""] = row.split("|").map((cell) => cell.trim());
    return Array.from(names.matchAll(/`([^`]+)`/g), ([, name = ""]) => [entryPoint, reason, name] as const);
  });
}

function repeatProblems(exports: readonly PublicExport[]): readonly string[] {
  const ours = exports.filter((item) => item.package !== foreignNames);
  const byName = [...Map.groupBy(ours, ({ name }) => name)];
  return byName
    .filter(([name, items]) => {
      const packages = new Set(items.map((item) => item.package));
      return items.length > 1 && (packages.size > 1 || !repeatedNames[items[0]?.package ?? ""]?.includes(name));
    })
    .map(([name, items]) => `${items[0]?.at} ${name} is exported by ${items.map(entryPointOf).join(" and ")}`);
}

/** What differs between the exports and the section of the page that gives a reason for each. */
function listProblems(exports: readonly PublicExport[], document: string): readonly string[] {
  const listed = readListed(document);
  const keys = listed.map(([entryPoint, , name]) => `${entryPoint} ${name}`);
  const sources = new Map(exports.map((item) => [`${entryPointOf(item)} ${item.name}`, item]));
  const missing = [...sources].filter(([key]) => !keys.includes(key));
  return [
    ...missing.map(([key, { at }]) => `${at} ${key} is public and has no row in ${documentPath}`),
    ...keys.filter((key) => !sources.has(key)).map((key) => `${documentPath}:1 ${key} is not exported`),
    ...keys.filter((key, at) => keys.indexOf(key) !== at).map((key) => `${documentPath}:1 ${key} stands twice`),
    ...listed.filter(([, reason]) => reason === "").map(([, , name]) => `${documentPath}:1 ${name} has no reason`),
  ];
}

/** How many names a user has to choose from: one that several entry points of a package export counts once. */
export function countNames(exports: readonly PublicExport[]): number {
  return new Set(exports.map(({ name }) => name)).size;
}

/** What is wrong with these exports and the page that gives the reason for each. */
export function exportProblems(exports: readonly PublicExport[], document: string): readonly string[] {
  const count = countNames(exports);
  return [
    ...exports
      .filter(({ summary }) => summary === null)
      .map(({ at, name }) => `${at} ${name} is public and has no docstring`),
    ...(count > mostPublicNames ? [`packages:1 ${count} names are public, at most ${mostPublicNames}`] : []),
    ...repeatProblems(exports),
    ...listProblems(exports, document),
  ];
}

if (import.meta.main) {
  const exports = readPublicExports(repositoryRoot);
  const problems = exportProblems(exports, readFileSync(join(repositoryRoot, documentPath), "utf8"));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  const end = problems.length === 0 ? "no problems" : `${problems.length} problems`;
  process.stdout.write(`exports: ${countNames(exports)} of at most ${mostPublicNames} names, ${end}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
