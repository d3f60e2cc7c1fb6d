import { langOf } from "./find-files.ts";
import { parseSync } from "oxc-parser";
import { isSyntaxNode, lineCounter, nameOf, walkSyntax } from "./syntax-tree.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

/** Something a source file does, and the line it does it on. */
export interface SourceFact {
  readonly name: string;
  readonly line: number;
}

/** What the layer check needs to know about one source file. */
export interface SourceFacts {
  readonly lineCount: number;
  /** Every module named by an import, a re-export, a dynamic import or an import type. */
  readonly imports: readonly SourceFact[];
  /** Names exported as values; types are not counted. */
  readonly valueExports: readonly SourceFact[];
  readonly starExports: readonly SourceFact[];
  readonly defaultExports: readonly SourceFact[];
  /** Uses of the world that only ports may touch: `Date.now`, `Math.random`, `process.env`, `node:fs` and their kin. */
  readonly worldUses: readonly SourceFact[];
  /** Double assertions (`as unknown as T`) without a comment on their line or right before it. */
  readonly unexplainedAssertions: readonly SourceFact[];
  readonly syntaxErrors: readonly SourceFact[];
}

const worldMembers = new Set(["Date.now", "Math.random", "process.env", "performance.now", "crypto.randomUUID"]);
const worldImports = new Map([
  ["node:process", ["env"]],
  ["node:crypto", ["randomUUID", "randomBytes", "randomInt"]],
]);

/** The last name of `a`, `a.b` or `globalThis.a.b`. */
function lastName(node: unknown): string | null {
  if (isSyntaxNode(node) && node.type === "MemberExpression") return nameOf(node["property"]);
  return nameOf(node);
}

function worldUse(node: SyntaxNode): string | null {
  if (node.type === "MemberExpression") {
    const name = `${lastName(node["object"])}.${nameOf(node["property"])}`;
    return worldMembers.has(name) ? name : null;
  }
  const isDate = (node.type === "NewExpression" || node.type === "CallExpression") && nameOf(node["callee"]) === "Date";
  if (isDate && (node["arguments"] as unknown[]).length === 0) return "new Date()";
  return null;
}

function importedWorld(module: string, names: readonly (string | null)[]): string[] {
  if (/^(node:)?fs(\/promises)?$/.test(module)) return ["node:fs"];
  const guarded = worldImports.get(module.startsWith("node:") ? module : `node:${module}`) ?? [];
  return guarded.filter((name) => names.includes(name)).map((name) => `${module} ${name}`);
}

const assertions: ReadonlySet<string> = new Set(["TSAsExpression", "TSTypeAssertion"]);

/** Where `unknown` stands in `x as unknown as T`, which turns off the check of the type; null for any other node. */
function doubleAssertionAt(node: SyntaxNode): number | null {
  if (!assertions.has(node.type)) return null;
  let inner = node["expression"];
  while (isSyntaxNode(inner) && inner.type === "ParenthesizedExpression") inner = inner["expression"];
  if (!isSyntaxNode(inner) || !assertions.has(inner.type)) return null;
  const through = inner["typeAnnotation"];
  return isSyntaxNode(through) && through.type === "TSUnknownKeyword" ? through.start : null;
}

/** Reads the facts of one TypeScript file from its syntax tree, so that comments and strings never count. */
export function readSourceFacts(path: string, text: string): SourceFacts {
  const { program, module, errors, comments } = parseSync(path, text, { lang: langOf(path), sourceType: "module" });
  const lineOf = lineCounter(text);
  const imports: SourceFact[] = [];
  const worldUses: SourceFact[] = [];
  const unexplainedAssertions: SourceFact[] = [];
  const commentLines = new Set(comments.map(({ end }) => lineOf(end)));
  const seeImport = (name: string, start: number, names: readonly (string | null)[]): void => {
    const line = lineOf(start);
    imports.push({ name, line });
    for (const world of importedWorld(name, names)) worldUses.push({ name: world, line });
  };
  for (const item of module.staticImports) {
    const names = item.entries.map((entry) => entry.importName.name ?? null);
    seeImport(item.moduleRequest.value, item.start, names);
  }
  const entries = module.staticExports.flatMap((item) => item.entries);
  for (const entry of entries) {
    if (entry.moduleRequest) seeImport(entry.moduleRequest.value, entry.start, [entry.importName.name ?? null]);
  }
  walkSyntax(program, (node) => {
    const world = worldUse(node);
    if (world) worldUses.push({ name: world, line: lineOf(node.start) });
    const assertedAt = doubleAssertionAt(node);
    if (assertedAt !== null) {
      const line = lineOf(assertedAt);
      const isExplained = [line - 1, line].some((at) => commentLines.has(at));
      if (!isExplained) unexplainedAssertions.push({ name: "as unknown as", line });
    }
    if (node.type !== "ImportExpression" && node.type !== "TSImportType") return;
    const source = nameOf(node["source"] ?? node["argument"]);
    if (source) seeImport(source, node.start, []);
  });
  const exported = entries.map((entry) => ({ entry, line: lineOf(entry.start) }));
  return {
    lineCount: text.split("\n").length - (text.endsWith("\n") ? 1 : 0),
    imports,
    worldUses,
    unexplainedAssertions,
    valueExports: exported
      .filter(({ entry }) => !entry.isType && entry.exportName.kind === "Name")
      .map(({ entry, line }) => ({ name: String(entry.exportName.name), line })),
    starExports: exported
      .filter(({ entry }) => entry.importName.kind === "AllButDefault" || entry.importName.kind === "All")
      .map(({ entry, line }) => ({ name: entry.moduleRequest?.value ?? "", line })),
    defaultExports: exported
      .filter(({ entry }) => entry.exportName.kind === "Default")
      .map(({ line }) => ({ name: "default", line })),
    syntaxErrors: errors.map((error) => ({ name: error.message, line: lineOf(error.labels[0]?.start ?? 0) })),
  };
}
