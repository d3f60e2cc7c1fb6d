import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Worker } from "node:worker_threads";
import { parseSync } from "oxc-parser";
import { findFiles, findPackages, langOf, repositoryRoot } from "./find-files.ts";
import { boundedVerdict } from "./bounded-expression.ts";
import { builtExpressions, type BuiltExpressionRow } from "./built-expressions.ts";
import { calleeNames, isSyntaxNode, lineCounter, walkSyntax } from "./syntax-tree.ts";

/** An expression in a source file. */
export interface FoundExpression {
  readonly path: string;
  readonly line: number;
  /** Null for one that is built while the program runs. */
  readonly source: string | null;
  readonly flags: string;
}

/** What recheck says: `safe`, `vulnerable` or `unknown`, and the complexity or the reason in words. */
export interface Verdict {
  readonly status: string;
  readonly summary: string;
}

/** Verdicts of recheck that are checked in: judging all expressions takes minutes. */
const verdictsPath = join(repositoryRoot, "tools/expression-verdicts.json");
const workerPath = join(import.meta.dirname, "recheck-worker.ts");

/** Every regular expression of a file: literals, and calls of `RegExp`. Linear expressions are no concern of this. */
export function readExpressions(path: string, text: string): FoundExpression[] {
  const found: FoundExpression[] = [];
  const lineOf = lineCounter(text);
  walkSyntax(parseSync(path, text, { lang: langOf(path) }).program, (node) => {
    const line = lineOf(node.start);
    const literal = node["regex"] as { readonly pattern: string; readonly flags: string } | undefined;
    if (node.type === "Literal" && literal !== undefined)
      found.push({ path, line, source: literal.pattern, flags: literal.flags });
    const isCall = node.type === "NewExpression" || node.type === "CallExpression";
    if (isCall && isSyntaxNode(node["callee"]) && calleeNames(node["callee"]).at(-1) === "RegExp")
      found.push({ path, line, source: null, flags: "" });
  });
  return found;
}

/** What built expressions and the table say against each other. */
export function checkBuilt(found: readonly FoundExpression[], rows: readonly BuiltExpressionRow[]): string[] {
  const built = found.filter(({ source }) => source === null);
  const paths = new Set([...built, ...rows].map(({ path }) => path));
  return [...paths].flatMap((path) => {
    const [inFile, inTable] = [built.filter((one) => one.path === path), rows.filter((row) => row.path === path)];
    const listed = inTable.reduce((sum, row) => sum + row.count, 0);
    return inFile.length === listed
      ? []
      : [
          `${path}:${inFile[0]?.line ?? 1} builds ${inFile.length} expressions; tools/built-expressions.ts has ${listed}`,
        ];
  });
}

/** Counts what is bounded by itself, and asks recheck about the others, over as many threads as there are processors; `cache` is read and filled. */
export async function judge(expressions: ReadonlySet<string>, cache: Map<string, Verdict>): Promise<void> {
  for (const expression of expressions) {
    const verdict = cache.has(expression) ? null : boundedVerdict(expression);
    if (verdict !== null) cache.set(expression, verdict);
  }
  const open = [...expressions].filter((expression) => !cache.has(expression));
  const work = async (): Promise<void> => {
    const worker = new Worker(workerPath);
    for (let expression = open.pop(); expression !== undefined; expression = open.pop()) {
      worker.postMessage(expression);
      const [verdict] = (await once(worker, "message")) as [Verdict];
      cache.set(expression, verdict);
    }
    await worker.terminate();
  };
  await Promise.all(Array.from({ length: Math.min(open.length, availableParallelism()) }, work));
}

/** The verdicts that are checked in, those of this version of recheck and of expressions it accepted. */
export function parseVerdicts(text: string, version: string): Map<string, Verdict> {
  const table = JSON.parse(text) as { readonly recheck: string; readonly safe: Readonly<Record<string, string>> };
  const safe = table.recheck === version ? Object.entries(table.safe) : [];
  return new Map(safe.map(([expression, summary]) => [expression, { status: "safe", summary }]));
}

/** The text of the table: what recheck accepted. What it did not is judged anew in every run. */
export function formatVerdicts(verdicts: ReadonlyMap<string, Verdict>, version: string): string {
  const safe = [...verdicts]
    .filter(([expression, { status }]) => status === "safe" && boundedVerdict(expression) === null)
    .map(([expression, { summary }]) => [expression, summary] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify({ recheck: version, safe: Object.fromEntries(safe) }, null, 2)}\n`;
}

function textOf({ source, flags }: { readonly source: string | null; readonly flags: string }): string {
  return `/${source ?? ""}/${flags}`;
}

/** `list` prints every expression; `write` writes the table; `all` judges what the table holds, too. */
type Mode = "list" | "write" | "all" | null;

async function main(mode: Mode): Promise<number> {
  const manifest = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as {
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  const version = manifest.devDependencies["recheck"] ?? "";
  const found = findPackages(repositoryRoot)
    .flatMap((folder) => findFiles(repositoryRoot, `${folder}/src`, [".ts", ".tsx"]))
    .flatMap((path) => readExpressions(path, readFileSync(join(repositoryRoot, path), "utf8")));
  const all = [
    ...found.filter(({ source }) => source !== null).map((one) => ({ place: `${one.path}:${one.line}`, ...one })),
    ...builtExpressions.flatMap((row) => row.samples.map((sample) => ({ place: `${row.path} (built)`, ...sample }))),
  ];
  const expressions = new Set(all.map(textOf));
  const known = existsSync(verdictsPath)
    ? parseVerdicts(readFileSync(verdictsPath, "utf8"), version)
    : new Map<string, Verdict>();
  const cache = new Map(mode === "all" ? [] : [...known].filter(([expression]) => expressions.has(expression)));
  const judged = [...expressions].filter((one) => !cache.has(one) && boundedVerdict(one) === null).length;
  await judge(expressions, cache);
  if (mode === "write") writeFileSync(verdictsPath, formatVerdicts(cache, version));
  const violations = checkBuilt(found, builtExpressions);
  for (const one of all) {
    const { status, summary } = cache.get(textOf(one)) as Verdict;
    if (mode === "list") process.stdout.write(`${one.place}\t${summary}\t${textOf(one)}\n`);
    if (status !== "safe") violations.push(`${one.place} ${summary}: ${textOf(one)}`);
  }
  for (const violation of violations.toSorted()) process.stdout.write(`${violation}\n`);
  const count = `${all.length} places, ${expressions.size} expressions (${judged} judged by recheck now), ${builtExpressions.length} files that build them`;
  process.stdout.write(`expressions: ${count}, ${violations.length === 0 ? "no" : violations.length} violations\n`);
  return violations.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  const modes = ["list", "write", "all"] as const;
  process.exitCode = await main(modes.find((mode) => process.argv.includes(`--${mode}`)) ?? null);
}
