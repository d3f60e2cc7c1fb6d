import { readFileSync } from "node:fs";
import { join } from "node:path";
import { classifyOverflow, createOverflowClassifier } from "../src/classify-overflow.ts";
import type { OverflowClassifier } from "../src/classify-overflow.ts";
import { readErrorFacts } from "../src/error-facts.ts";
import { fillSlots, lexicon } from "../src/lexicon.ts";
import type { Lexicon } from "../src/lexicon.ts";
import { overflowRules } from "../src/overflow-rules.ts";
import type { OverflowRule } from "../src/overflow-rules.ts";
import { plainText } from "../src/plain-text.ts";

/** A row of the corpus: an error of a provider, and whether it is an overflow. */
export interface CorpusRow {
  readonly id: number;
  readonly provider: string;
  readonly status: number;
  readonly message: string;
  readonly kind: string;
  readonly overflow: boolean;
  readonly tokens?: number;
  readonly limit?: number;
  readonly maxTokens?: number;
}

/** The corpus below a folder. */
export function readCorpus(folder: string): readonly CorpusRow[] {
  return JSON.parse(readFileSync(join(folder, "overflow-corpus.json"), "utf8")) as readonly CorpusRow[];
}

/** A row as a client would hand it over. */
export function errorOf(row: CorpusRow): object {
  return { provider: row.provider, ...(row.status > 0 ? { status: row.status } : {}), message: row.message };
}

const linesByRow = new WeakMap<CorpusRow, readonly string[]>();

function linesOf(row: CorpusRow): readonly string[] {
  const known = linesByRow.get(row);
  if (known !== undefined) return known;
  const { texts, codes } = readErrorFacts(errorOf(row));
  const lines = [...texts, ...codes].map(plainText);
  linesByRow.set(row, lines);
  return lines;
}

/** Overflow rows in which a rule's wording stands, whether or not an earlier rule decided. */
export function rowsOfRule(rule: OverflowRule, rows: readonly CorpusRow[]): readonly CorpusRow[] {
  const pattern = new RegExp(fillSlots(rule.template, lexicon));
  const never = rule.unless === undefined ? null : new RegExp(fillSlots(rule.unless, lexicon));
  const fits = (line: string): boolean => pattern.test(line) && never?.test(line) !== true;
  return rows.filter((row) => row.overflow && linesOf(row).some(fits));
}

function rowsOfTerm(term: string, rows: readonly CorpusRow[]): readonly CorpusRow[] {
  const pattern = new RegExp(`(?<![a-z])(?:${term})(?![a-z])`);
  return rows.filter((row) => row.overflow && linesOf(row).some((line) => pattern.test(line)));
}

/** True when everything that supports something came from one provider. */
function isOnlyOf(provider: string, supporting: readonly CorpusRow[]): boolean {
  return supporting.length > 0 && supporting.every((row) => row.provider === provider);
}

/** The classifier as it would be had nobody seen a provider's errors: without what only its rows speak for. */
function classifierWithout(provider: string, rows: readonly CorpusRow[]): OverflowClassifier {
  const rules = overflowRules.filter((rule) => !isOnlyOf(provider, rowsOfRule(rule, rows)));
  const words = Object.fromEntries(
    Object.entries(lexicon).map(([name, terms]: [string, readonly string[]]) => [
      name,
      terms.filter((term) => !isOnlyOf(provider, rowsOfTerm(term, rows))),
    ]),
  );
  return createOverflowClassifier(rules, words as unknown as Lexicon);
}

/** How a group of rows fares. */
export interface Recall {
  readonly name: string;
  readonly overflows: number;
  readonly found: number;
  readonly rightKind: number;
  readonly lookAlikes: number;
  readonly falseAlarms: number;
  /** Rows that were missed or alarmed about. */
  readonly wrong: readonly number[];
}

/** Counts with a classifier chosen row by row. */
export function recallOf(
  name: string,
  rows: readonly CorpusRow[],
  classifierFor: (row: CorpusRow) => OverflowClassifier = () => classifyOverflow,
): Recall {
  const results = rows.map((row) => ({ row, result: classifierFor(row)(errorOf(row)) }));
  const overflows = results.filter(({ row }) => row.overflow);
  const others = results.filter(({ row }) => !row.overflow);
  return {
    name,
    overflows: overflows.length,
    found: overflows.filter(({ result }) => result.overflow).length,
    rightKind: overflows.filter(({ row, result }) => result.kind === row.kind).length,
    lookAlikes: others.length,
    falseAlarms: others.filter(({ result }) => result.overflow).length,
    wrong: results.filter(({ row, result }) => row.overflow !== result.overflow).map(({ row }) => row.id),
  };
}

/** Every row judged by a classifier that has not seen its provider. */
export function leaveOneProviderOut(rows: readonly CorpusRow[]): Recall {
  const classifiers = new Map(
    [...new Set(rows.map((row) => row.provider))].map((provider) => [provider, classifierWithout(provider, rows)]),
  );
  return recallOf("leave one provider out", rows, ({ provider }) => classifiers.get(provider) ?? classifyOverflow);
}
