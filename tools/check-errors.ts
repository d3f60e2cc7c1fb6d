import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseSync } from "oxc-parser";
import { findFiles, findPackages, langOf, repositoryRoot } from "./find-files.ts";
import { calleeNames, isSyntaxNode, lineCounter, nameOf, textOf, walkSyntax } from "./syntax-tree.ts";

/** A row of the error table. */
export interface ErrorRow {
  readonly summary: string;
  readonly retryable: boolean;
  readonly remedy: string;
}

/** A row of the table of findings. */
export interface FindingRow {
  readonly severity: string;
  readonly remedy: string;
}

/** The two tables that the documentation must agree with. */
export interface CodeTables {
  readonly errors: Readonly<Record<string, ErrorRow>>;
  readonly findings: Readonly<Record<string, FindingRow>>;
}

const documentPath = "docs/errors.md";
const tableFiles: readonly string[] = ["packages/core/src/error-codes.ts", "packages/core/src/finding.ts"];
const codePattern = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;
// ENOENT and its like: codes of the operating system, which have no underscore and begin with E.
const systemCodePattern = /^E[A-Z0-9]+$/;

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

/** The document that belongs to the tables. */
export function errorsDocument(tables: CodeTables): string {
  const sorted = <Row>(table: Readonly<Record<string, Row>>): [string, Row][] =>
    Object.entries(table).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const errors = sorted(tables.errors).map(
    ([code, row]) => `| \`${code}\` | ${cell(row.summary)} | ${row.retryable ? "yes" : "no"} | ${cell(row.remedy)} |`,
  );
  const findings = sorted(tables.findings).map(
    ([code, row]) => `| \`${code}\` | ${row.severity} | ${cell(row.remedy)} |`,
  );
  return [
    "# Errors and findings",
    "",
    "Written by `node tools/check-errors.ts --write` from the tables in `packages/core/src`; the check fails when they differ.",
    "",
    "## Errors",
    "",
    "Every error is a `ThroughlineError` with one of these codes. *Retryable* means that the same call may succeed later.",
    "",
    "| code | what happened | retryable | what to do |",
    "| --- | --- | --- | --- |",
    ...errors,
    "",
    "## Findings",
    "",
    "A finding is reported, never thrown: it says what was odd in something that was read anyway.",
    "",
    "| code | severity | what to do |",
    "| --- | --- | --- |",
    ...findings,
    "",
  ].join("\n");
}

/** A code in a source file, and whether it is thrown there or only mentioned. */
interface CodeUse {
  readonly code: string;
  readonly line: number;
  readonly isConstructed: boolean;
}

/** The places of an expression where a code can stand: itself, or both branches of a condition. */
function codesIn(node: unknown): string[] {
  if (isSyntaxNode(node) && node.type === "ConditionalExpression") {
    return [...codesIn(node["consequent"]), ...codesIn(node["alternate"])];
  }
  const text = textOf(node, false);
  return text !== null && codePattern.test(text) ? [text] : [];
}

/** Every code of a source file: those that make an error or a finding, and those that are only named. */
export function readCodeUses(path: string, text: string): CodeUse[] {
  const uses: CodeUse[] = [];
  const lineOf = lineCounter(text);
  const add = (node: unknown, start: number, isConstructed: boolean): void => {
    for (const code of codesIn(node)) uses.push({ code, line: lineOf(start), isConstructed });
  };
  walkSyntax(parseSync(path, text, { lang: langOf(path) }).program, (node) => {
    if (node.type === "NewExpression" || node.type === "CallExpression") {
      const [callee] = calleeNames(node["callee"]).slice(-1);
      const makes = callee === "ThroughlineError" || callee === "throughlineError" || callee === "createFinding";
      if (makes) add((node["arguments"] as unknown[])[0], node.start, true);
    }
    if (node.type === "Property" && nameOf(node["key"]) === "code") add(node["value"], node.start, true);
    if (node.type === "Literal" || node.type === "TemplateLiteral") add(node, node.start, false);
  });
  return uses;
}

/** Everything in which tables, document and sources disagree. */
export function checkErrors(root: string, tables: CodeTables, document: string | null): string[] {
  const known = new Set([...Object.keys(tables.errors), ...Object.keys(tables.findings)]);
  const documented = new Set(
    Array.from((document ?? "").matchAll(/^\| `([A-Z0-9_]+)` \|/gm), (match) => match[1] ?? ""),
  );
  const violations = [
    ...known
      .difference(documented)
      .values()
      .map((code) => `${documentPath}:1 ${code} is not documented; run --write`),
    ...documented
      .difference(known)
      .values()
      .map((code) => `${documentPath}:1 ${code} is in no table; run --write`),
  ];
  if (violations.length === 0 && document !== errorsDocument(tables)) {
    violations.push(`${documentPath}:1 differs from the tables; run node tools/check-errors.ts --write`);
  }
  const used = new Set<string>();
  for (const path of findPackages(root).flatMap((folder) => findFiles(root, `${folder}/src`, [".ts", ".tsx"]))) {
    if (tableFiles.includes(path)) continue;
    for (const { code, line, isConstructed } of readCodeUses(path, readFileSync(join(root, path), "utf8"))) {
      used.add(code);
      if (isConstructed && !known.has(code) && !systemCodePattern.test(code)) {
        violations.push(`${path}:${line} ${code} is in no table`);
      }
    }
  }
  for (const code of known.difference(used)) {
    violations.push(`${tableFiles[code in tables.errors ? 0 : 1]}:1 ${code} is never used`);
  }
  return violations.toSorted();
}

async function readTables(): Promise<CodeTables> {
  const [errorModule, findingModule] = await Promise.all(
    tableFiles.map((path) => import(join(repositoryRoot, path)) as Promise<Record<string, unknown>>),
  );
  return {
    errors: errorModule?.["errorCodes"] as CodeTables["errors"],
    findings: findingModule?.["findingCodes"] as CodeTables["findings"],
  };
}

function readDocument(): string | null {
  try {
    return readFileSync(join(repositoryRoot, documentPath), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

if (import.meta.main) {
  const tables = await readTables();
  if (process.argv.includes("--write")) writeFileSync(join(repositoryRoot, documentPath), errorsDocument(tables));
  const violations = checkErrors(repositoryRoot, tables, readDocument());
  for (const violation of violations) process.stdout.write(`${violation}\n`);
  const count = `${Object.keys(tables.errors).length} errors, ${Object.keys(tables.findings).length} findings`;
  process.stdout.write(`codes: ${count}, ${violations.length === 0 ? "no" : violations.length} violations\n`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
