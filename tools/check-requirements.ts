import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseSync } from "oxc-parser";
import { findFiles, repositoryRoot } from "./find-files.ts";
import { calleeNames, lineCounter, nameOf, textOf, walkSyntax } from "./syntax-tree.ts";

/** A row of docs/requirements.md. */
export interface RequirementRow {
  readonly id: string;
  readonly line: number;
  /** The dated reason of a row that is left out; null for one that is to be proven. */
  readonly leftOut: string | null;
}

/** The requirement ids that one test title names. */
export interface ProvingTitle {
  readonly path: string;
  readonly line: number;
  readonly ids: readonly string[];
}

/** How far an area, or everything, is proven. */
export interface ProvenCount {
  readonly proven: number;
  /** Rows to be proven: those left out are not among them. */
  readonly total: number;
  readonly leftOut: number;
}

/** What the check found. */
export interface RequirementReport extends ProvenCount {
  readonly areas: Readonly<Record<string, ProvenCount>>;
  readonly unproven: readonly string[];
  readonly violations: readonly string[];
}

const tablePath = "docs/requirements.md";
const kitFolder = "packages/store-conformance/src";
const idPattern = /^(?:[A-Z]+-\d+|C\d+)$/;
const bracketPattern = /\[((?:[A-Z]+-\d+|C\d+)(?:[\s,]+(?:[A-Z]+-\d+|C\d+))*)\]/g;
const mostIdsPerTitle = 5;

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
    rows.push({ id, line: index + 1, leftOut });
  }
  return { rows, violations };
}

/** The ids in square brackets of one title. */
export function idsOfTitle(title: string): string[] {
  return Array.from(title.matchAll(bracketPattern), (match) => (match[1] ?? "").split(/[\s,]+/)).flat();
}

/**
 * The titles of a file that name requirements: first arguments of `it` and `test`, and `title` properties, which is how
 * the conformance kit names its cases. A test that never runs proves nothing, so `skip` and `todo` are passed over.
 */
export function readProvingTitles(path: string, text: string): ProvingTitle[] {
  const titles: ProvingTitle[] = [];
  const lineOf = lineCounter(text);
  const add = (node: unknown, start: number): void => {
    const ids = idsOfTitle(textOf(node, true) ?? "");
    if (ids.length > 0) titles.push({ path, line: lineOf(start), ids });
  };
  walkSyntax(parseSync(path, text, { lang: "ts" }).program, (node) => {
    if (node.type === "Property" && nameOf(node["key"]) === "title") add(node["value"], node.start);
    if (node.type !== "CallExpression") return true;
    const [first, ...modifiers] = calleeNames(node["callee"]);
    if (modifiers.includes("skip") || modifiers.includes("todo")) return false;
    if (first === "it" || first === "test") add((node["arguments"] as unknown[])[0], node.start);
    return true;
  });
  return titles;
}

function count(rows: readonly RequirementRow[], proven: ReadonlySet<string>): ProvenCount {
  const wanted = rows.filter((row) => row.leftOut === null);
  return {
    proven: wanted.filter((row) => proven.has(row.id)).length,
    total: wanted.length,
    leftOut: rows.length - wanted.length,
  };
}

/** Holds the rows of `table` against the titles. */
export function checkRequirements(table: string, titles: readonly ProvingTitle[]): RequirementReport {
  const { rows, violations } = readRequirements(table);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const proven = new Set(titles.flatMap((title) => title.ids));
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
  const byArea = Map.groupBy(rows, (row) => /^[A-Z]+/.exec(row.id)?.[0] ?? "");
  return {
    ...count(rows, proven),
    areas: Object.fromEntries(byArea.entries().map(([area, ofArea]) => [area, count(ofArea, proven)])),
    unproven: rows.filter((row) => !row.leftOut && !proven.has(row.id)).map((row) => row.id),
    violations: violations.toSorted(),
  };
}

function counted({ proven, total, leftOut }: ProvenCount, verb: string): string {
  return `${proven} of ${total}${verb}${leftOut > 0 ? `, ${leftOut} left out` : ""}`;
}

/** The report as lines of text; the last one is the sum. */
export function reportLines(report: RequirementReport): string[] {
  return [
    ...report.violations,
    ...Object.entries(report.areas).map(([area, ofArea]) => `${area} ${counted(ofArea, "")}`),
    `requirements: ${counted(report, " proven")}`,
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
  const report = checkRequirements(table, collectTitles(repositoryRoot));
  const json = process.argv.includes("--json");
  process.stdout.write(`${json ? JSON.stringify(report) : reportLines(report).join("\n")}\n`);
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}
