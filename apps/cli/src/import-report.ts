import { hasErrorCode, type SessionStore } from "@throughline/core";
import { type ImportResult, ImportResults, type ImportSource, needsAttention } from "@throughline/transfer/internal";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { fillIndex } from "./fill-index.ts";
import { ImportSummary } from "./import-summary.ts";
import { limitYoungHeap } from "./sync/limit-young-heap.ts";
import { jsonLine } from "./terminal-safe.ts";
import type { TableColumn } from "./text-table.ts";

/** Sets how the results of an import are printed. */
interface ImportReportOptions {
  /** Names the result in `--json`. */
  readonly kind: "import" | "sync";
  /** `all` prints every result, `changed` those that an earlier pass of `reported` did not print. */
  readonly shown: "all" | "changed";
  readonly isDryRun: boolean;
  /** Holds refusals that an earlier pass printed, so that each appears once. */
  readonly reported: Set<string>;
  /** Counts the files that were not opened, once all results are there. @default none */
  readonly unopened?: () => number;
}

export interface ImportReport {
  readonly totals: ImportTotals;
  readonly summary: ImportSummary;
  readonly firstRefusal: ImportSource["error"];
  /** True when a finding needs attention. */
  readonly isOdd: boolean;
}

/** Prints the results of an import, and adds its records to the search index. */
export async function reportImport(
  context: CommandContext,
  store: SessionStore,
  sources: AsyncIterable<ImportSource>,
  options: ImportReportOptions,
): Promise<ImportReport> {
  const { output, signal } = context;
  const { kind, shown, isDryRun, reported, unopened = () => 0 } = options;
  limitYoungHeap();
  using results = new ImportResults();
  const totals = noTotals();
  const summary = new ImportSummary();
  const conflictRemedies: string[] = [];
  let firstRefusal: ImportSource["error"] = null;
  let isOdd = false;
  try {
    for await (const source of sources) {
      // Most refusals are also findings; printing both would look like two problems.
      const { path, error, findings, state } = source;
      const isKnown = error !== null && reported.has(`${path} ${error.message}`);
      if (error !== null) reported.add(`${path} ${error.message}`);
      count(totals, source);
      const isSame = isKnown || state === "unchanged" || state === "skipped";
      if (shown === "changed" && isSame) continue;
      if (kind === "import" || !isSame) results.add(source);
      summary.take(source);
      firstRefusal ??= error;
      isOdd ||= state === "refused" || source.lost.length > 0 || needsAttention(findings);
      for (const finding of findings) output.finding(finding);
      if (error !== null && !findings.some(({ message }) => message === error.message))
        output.note(`${path}: ${error.message}`);
      if (hasErrorCode(error, "APPEND_CONFLICT")) conflictRemedies.push(error.remedy);
    }
  } catch (error) {
    const wasDone = isDryRun ? "Nothing was written. Until then it would be: " : "Until then: ";
    if (signal.aborted) output.note(`${wasDone}${totalsText(totals)}`);
    throw error;
  }
  output.clearProgress();
  totals.unchanged += unopened();
  totals.sources += unopened();
  const isNews = totals.imported + totals.grown > 0 || firstRefusal !== null;
  if (shown === "all" || isNews) await print(context, results, totals, { kind, isDryRun });
  await output.flush();
  if (totals.records > 0 && !isDryRun) await fillIndex(context, store);
  // If every source was refused, the command throws that error, which prints its remedy.
  if (totals.refused < totals.sources) for (const remedy of conflictRemedies) output.note(remedy);
  return { totals, summary, firstRefusal, isOdd };
}

const columns: readonly TableColumn[] = [
  { title: "STATE" },
  { title: "RECORDS", align: "right" },
  { title: "REPAIRED", align: "right", rank: 2 },
  { title: "LOST", align: "right", rank: 1 },
  { title: "FORMAT", rank: 3 },
  { title: "KEY" },
  { title: "PATH", rank: 4 },
];

async function print(
  { output }: CommandContext,
  results: ImportResults,
  totals: ImportTotals,
  { kind, isDryRun }: Pick<ImportReportOptions, "kind" | "isDryRun">,
): Promise<void> {
  if (output.isJson) {
    // The output is one JSON object that may exceed the memory, so it is written in pieces.
    let before = `{"kind":"${kind}","sources":[`;
    const opening = before;
    for (const page of results.pages()) {
      for (const source of page) {
        await output.bytes(Buffer.from(`${before}${jsonLine(source)}`));
        before = ",";
      }
    }
    await output.bytes(Buffer.from(`${before === "," ? "" : opening}],"totals":${jsonLine(totals)}}\n`));
    return;
  }
  // The sessions of a sync are too many for a table.
  if (kind === "import") await printTable(output, results, totals);
  output.note(`${isDryRun ? "Nothing was written. It would be: " : ""}${totalsText(totals)}`);
}

async function printTable(
  output: CommandContext["output"],
  results: ImportResults,
  totals: ImportTotals,
): Promise<void> {
  let isFirst = true;
  for (const page of results.pages()) {
    await output.table(columns, page.map(rowOf), isFirst ? "always" : "never");
    isFirst = false;
  }
  if (totals.sources === 0) await output.table(columns, [], "always");
}

function totalsText({ imported, grown, unchanged, skipped, refused, records, repaired, lost }: ImportTotals): string {
  const states = `${imported} imported, ${grown} grown, ${unchanged} unchanged, ${skipped} skipped, ${refused} refused`;
  return `${states}; ${counted(records, "record")}, ${repaired} repaired, ${lost} lost.`;
}

function rowOf({ state, records, repaired, lost, format, key, path }: ImportResult): readonly string[] {
  return [state, String(records), String(repaired), String(lost.length), format, key ?? "", path];
}

/** The fields are in print order. */
interface ImportTotals {
  sources: number;
  imported: number;
  grown: number;
  unchanged: number;
  skipped: number;
  refused: number;
  records: number;
  repaired: number;
  lost: number;
}

function noTotals(): ImportTotals {
  return { sources: 0, imported: 0, grown: 0, unchanged: 0, skipped: 0, refused: 0, records: 0, repaired: 0, lost: 0 };
}

function count(totals: ImportTotals, { state, records, repaired, lost }: ImportSource): void {
  totals.sources += 1;
  totals[state] += 1;
  totals.records += records;
  totals.repaired += repaired;
  totals.lost += lost.length;
}
