import process from "node:process";
import { overflowRules } from "../packages/guard/src/overflow-rules.ts";
import { classifyOverflow } from "../packages/guard/src/index.ts";
import { leaveOneProviderOut, readCorpus, recallOf, rowsOfRule } from "../packages/guard/test/overflow-corpus.ts";
import type { CorpusRow, Recall } from "../packages/guard/test/overflow-corpus.ts";
import { readFreshWordings, scoreOf } from "../packages/guard/test/fresh-wordings.ts";
import { lookAlikes, unseenOverflows } from "../packages/guard/test/unseen-wordings.ts";

function percent(part: number, whole: number): string {
  return whole === 0 ? "-" : `${((part * 100) / whole).toFixed(1)} %`;
}

function line(recall: Recall): string {
  const { name, overflows, found, rightKind, lookAlikes: others, falseAlarms, wrong } = recall;
  const cells = [`${found} of ${overflows}`, percent(found, overflows), rightKind, `${falseAlarms} of ${others}`];
  return `| ${name} | ${cells.join(" | ")} | ${wrong.join(", ")} |`;
}

function grouped(rows: readonly CorpusRow[], keyOf: (row: CorpusRow) => string): Recall[] {
  return [...Map.groupBy(rows, keyOf)].map(([name, group]) => recallOf(name, group));
}

function unseenLine(): string {
  const isFound = ({ text, status }: { readonly text: string; readonly status?: number }): boolean =>
    classifyOverflow({ status: status ?? 400, message: text }).overflow;
  const found = unseenOverflows.filter(isFound).length;
  const alarms = lookAlikes.filter(isFound).length;
  return `| wordings made up for the tests | ${found} of ${unseenOverflows.length} | ${percent(found, unseenOverflows.length)} | | ${alarms} of ${lookAlikes.length} | |`;
}

function freshLines(): string[] {
  return [...Map.groupBy(readFreshWordings(), ({ half }) => half)].map(([half, rows]) => {
    const { overflows, found, rightKind, falseAlarms, lookAlikes: others } = scoreOf(rows);
    const cells = [
      `${found} of ${overflows}`,
      percent(found, overflows),
      rightKind,
      `${falseAlarms.length} of ${others}`,
    ];
    return `| fresh wordings, ${half} half | ${cells.join(" | ")} | |`;
  });
}

/** Prints recall and false alarms of the overflow classifier on the corpus below `folder`. */
function main(folder: string | undefined): number {
  if (folder === undefined) {
    process.stderr.write("usage: node lab/overflow-recall.ts FOLDER  (the folder that holds overflow-corpus.json)\n");
    return 2;
  }
  const rows = readCorpus(folder);
  const head =
    "| rows | found | recall | right kind | false alarms | wrong rows |\n| --- | --- | --- | --- | --- | --- |";
  const all = [recallOf("all", rows), leaveOneProviderOut(rows)].map(line);
  const rules = overflowRules.map(
    (rule) =>
      `| ${rule.id} | ${rule.kind} | ${rowsOfRule(rule, rows)
        .map(({ id }) => id)
        .join(", ")} | ${rule.because ?? ""} |`,
  );
  const parts = [
    [head, ...all, unseenLine(), ...freshLines()],
    [head, ...grouped(rows, (row) => (row.overflow ? row.kind : "look-alikes")).map(line)],
    [head, ...grouped(rows, (row) => row.provider).map(line)],
    ["| rule | kind | rows it catches | because |\n| --- | --- | --- | --- |", ...rules],
  ];
  process.stdout.write(`${parts.map((part) => part.join("\n")).join("\n\n")}\n`);
  return 0;
}

process.exitCode = main(process.argv[2]);
