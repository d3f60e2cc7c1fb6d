import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseSync } from "oxc-parser";
import { findFiles, repositoryRoot } from "./find-files.ts";
import { readTestPath } from "./product-tests.ts";
import { calleeNames, isSyntaxNode, lineCounter, nameOf, textOf, walkSyntax } from "./syntax-tree.ts";

/** A row of docs/internal/requirements.md. */
export interface RequirementRow {
  readonly id: string;
  readonly line: number;
  /** The dated reason of a row that is left out; null for one that needs proof. */
  readonly leftOut: string | null;
  /** Why no user can observe what the row says, so that any test proves it; null for every other row. */
  readonly internal: string | null;
}

/** The requirement ids that one test title names. */
export interface ProvingTitle {
  readonly path: string;
  readonly line: number;
  readonly ids: readonly string[];
  /** The test is skipped on a machine without the corpus of real transcripts, so it proves nothing. */
  readonly needsCorpus: boolean;
}

/** How far an area, or everything, is proven. */
export interface ProvenCount {
  /** Rows proven by a test that runs the product. */
  readonly throughProduct: number;
  /** Rows proven by other tests only. */
  readonly byOtherTests: number;
  /** Rows that no user can observe, proven by any test. */
  readonly internal: number;
  /** Rows that need proof through the product: neither internal nor left out. */
  readonly total: number;
  readonly leftOut: number;
}

/** A row that tests of the product do not reach, with the tests that name it. */
export interface WeakRow {
  readonly id: string;
  readonly tests: readonly string[];
}

/** What the check found. */
export interface RequirementReport extends ProvenCount {
  readonly areas: Readonly<Record<string, ProvenCount>>;
  readonly unproven: readonly string[];
  readonly byOtherTestsOnly: readonly WeakRow[];
  readonly violations: readonly string[];
}

const tablePath = "docs/internal/requirements.md";
const kitFolder = "packages/store-conformance/src";
// A row that was split keeps its id; its parts have a letter behind it: `CMP-03`, `CMP-03b`.
const idPattern = /^(?:[A-Z]+-\d+|C\d+)[a-z]?$/;
const bracketPattern = /\[((?:[A-Z]+-\d+|C\d+)[a-z]?(?:[\s,]+(?:[A-Z]+-\d+|C\d+)[a-z]?)*)\]/g;
const mostIdsPerTitle = 5;
/** Where tables of cases have the titles of their tests; the second is the conformance kit's. */
const titleFields: ReadonlySet<string> = new Set(["title", "demand"]);

/** Reads the rows of the tables; a row that breaks their form is a violation. */
export function readRequirements(text: string): { readonly rows: RequirementRow[]; readonly violations: string[] } {
  const rows: RequirementRow[] = [];
  const violations: string[] = [];
  const seen = new Set<string>();
  for (const [index, textLine] of text.split("\n").entries()) {
    const at = `${tablePath}:${index + 1}`;
    const cells = textLine.split(/(?<!\\)\|/).map((part) => part.trim());
    const id = cells[1] ?? "";
    if (cells[0] !== "" || !idPattern.test(id)) continue;
    if (cells.length !== 6) violations.push(`${at} ${id} has ${cells.length - 2} columns instead of 4`);
    if (seen.has(id)) violations.push(`${at} ${id} stands twice`);
    seen.add(id);
    const note = cells[4] ?? "";
    const leftOut = /left out: (\d{4}-\d{2}-\d{2} \S.*)/.exec(note)?.[1] ?? null;
    if (/left out/i.test(note) && !leftOut)
      violations.push(`${at} ${id} is left out without "left out: YYYY-MM-DD reason"`);
    const internal = /\binternal: (\S.*)/.exec(note)?.[1] ?? null;
    if (/\binternal\b/i.test(note) && !internal) violations.push(`${at} ${id} is internal without "internal: reason"`);
    rows.push({ id, line: index + 1, leftOut, internal });
  }
  return { rows, violations };
}

/** The ids in square brackets of one title. */
export function idsOfTitle(title: string): string[] {
  return Array.from(title.matchAll(bracketPattern), (match) => (match[1] ?? "").split(/[\s,]+/)).flat();
}

/**
 * The titles of a file that name requirements: first arguments of `it` and `test`, and `title` and `demand` properties,
 * which are the titles in tables of cases. A test that never runs proves nothing, so `skip` and `todo` are passed over.
 */
export function readProvingTitles(path: string, text: string): ProvingTitle[] {
  const titles: ProvingTitle[] = [];
  const lineOf = lineCounter(text);
  const readsCorpus = text.includes("THROUGHLINE_CORPUS");
  const visit = (value: unknown, needsCorpus: boolean): void => {
    const add = (node: unknown, start: number): void => {
      const ids = idsOfTitle(textOf(node, true) ?? "");
      if (ids.length > 0) titles.push({ path, line: lineOf(start), ids, needsCorpus });
    };
    walkSyntax(value, (node) => {
      if (node.type === "Property" && titleFields.has(nameOf(node["key"]) ?? "")) add(node["value"], node.start);
      if (node.type !== "CallExpression") return true;
      const [first, ...modifiers] = calleeNames(node["callee"]);
      if (modifiers.includes("skip") || modifiers.includes("todo")) return false;
      const isConditional = modifiers.includes("skipIf") || modifiers.includes("runIf");
      if (!needsCorpus && isConditional && (readsCorpus || /corpus/i.test(calleeText(node["callee"], text)))) {
        visit(node, true);
        return false;
      }
      if (first === "it" || first === "test") add((node["arguments"] as unknown[])[0], node.start);
      return true;
    });
  };
  visit(parseSync(path, text, { lang: "ts" }).program, false);
  return titles;
}

function calleeText(callee: unknown, text: string): string {
  return isSyntaxNode(callee) ? text.slice(callee.start, Number(callee["end"])) : "";
}

type Proof = "product" | "other" | "none";

function count(rows: readonly RequirementRow[], proofs: ReadonlyMap<string, Proof>): ProvenCount {
  const open = rows.filter((row) => row.leftOut === null);
  const wanted = open.filter((row) => row.internal === null);
  return {
    throughProduct: wanted.filter((row) => proofs.get(row.id) === "product").length,
    byOtherTests: wanted.filter((row) => proofs.get(row.id) === "other").length,
    internal: open.length - wanted.length,
    total: wanted.length,
    leftOut: rows.length - open.length,
  };
}

/** Compares the rows of `table` with the titles; `runsProduct` tells of a file whether its tests run the product. */
export function checkRequirements(
  table: string,
  titles: readonly ProvingTitle[],
  runsProduct: (path: string) => boolean,
): RequirementReport {
  const { rows, violations } = readRequirements(table);
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const { path, line, ids } of titles) {
    if (ids.length > mostIdsPerTitle)
      violations.push(`${path}:${line} ${ids.length} ids in one title; at most ${mostIdsPerTitle}`);
    for (const id of ids) {
      const row = byId.get(id);
      if (!row) violations.push(`${path}:${line} ${id} is not a requirement`);
      else if (row.leftOut)
        violations.push(`${path}:${line} ${id} is proven here but left out in ${tablePath}:${row.line}`);
    }
  }
  const counting = titles.filter((title) => !title.needsCorpus);
  const proofs = new Map<string, Proof>();
  for (const { path, ids } of counting) {
    const proof = runsProduct(path) ? "product" : "other";
    for (const id of ids) if (proofs.get(id) !== "product") proofs.set(id, proof);
  }
  const byArea = Map.groupBy(rows, (row) => /^[A-Z]+/.exec(row.id)?.[0] ?? "");
  const needed = rows.filter((row) => row.leftOut === null);
  return {
    ...count(rows, proofs),
    areas: Object.fromEntries(byArea.entries().map(([area, ofArea]) => [area, count(ofArea, proofs)])),
    unproven: needed.filter((row) => !proofs.has(row.id)).map((row) => row.id),
    byOtherTestsOnly: needed
      .filter((row) => row.internal === null && proofs.get(row.id) === "other")
      .map(({ id }) => ({
        id,
        tests: counting.filter(({ ids }) => ids.includes(id)).map(({ path, line }) => `${path}:${line}`),
      })),
    violations: violations.toSorted(),
  };
}

function counted(count: ProvenCount, through: string): string {
  const parts = [`${count.throughProduct} of ${count.total}${through}`];
  if (count.byOtherTests > 0 || through !== "") parts.push(`${count.byOtherTests} by other tests only`);
  if (count.internal > 0) parts.push(`${count.internal} internal`);
  if (count.leftOut > 0) parts.push(`${count.leftOut} left out`);
  return parts.join(", ");
}

/** The report as lines of text; the last one is the sum. `list` adds the rows that no test of the product proves. */
export function reportLines(report: RequirementReport, list = false): string[] {
  return [
    ...report.violations,
    ...(list ? report.byOtherTestsOnly.map(({ id, tests }) => `${id} by other tests only: ${tests.join(" ")}`) : []),
    ...report.unproven.map((id) => `${id} unproven`),
    ...Object.entries(report.areas).map(([area, ofArea]) => `${area} ${counted(ofArea, "")}`),
    `requirements: ${counted(report, " proven through the product")}`,
  ];
}

function collectTitles(root: string): ProvingTitle[] {
  const tests = ["packages", "apps", "tools", "examples"].flatMap((folder) => findFiles(root, folder, [".test.ts"]));
  // The tests of this check are about made-up rows.
  const paths = [...tests, ...findFiles(root, kitFolder, [".ts"])].filter(
    (path) => !path.startsWith("tools/test/check-req"),
  );
  return paths.flatMap((path) => readProvingTitles(path, readFileSync(join(root, path), "utf8")));
}

if (import.meta.main) {
  const table = readFileSync(join(repositoryRoot, tablePath), "utf8");
  const report = checkRequirements(
    table,
    collectTitles(repositoryRoot),
    (path) => readTestPath(repositoryRoot, path).runsProduct,
  );
  const has = (flag: string): boolean => process.argv.includes(flag);
  const text = has("--json") ? JSON.stringify(report) : reportLines(report, has("--list")).join("\n");
  process.stdout.write(`${text}\n`);
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}
