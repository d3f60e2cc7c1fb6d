import { hasErrorCode, sessionRef, type SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { ImportResults, needsAttention } from "@throughline/transfer/internal";
import { importPaths } from "@throughline/transfer";
import type { ImportOptions } from "@throughline/transfer";
import type { ImportResult, ImportSource } from "@throughline/transfer/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { fillIndex } from "../fill-index.ts";
import { ImportSummary } from "../import-summary.ts";
import { namedPath } from "../named-path.ts";
import { parseStoreUrl } from "@throughline/config";
import { jsonLine } from "../terminal-safe.ts";
import type { TableColumn } from "../text-table.ts";

interface ImportCommandOptions {
  readonly from?: NonNullable<ImportOptions["from"]>;
  readonly key?: string;
  readonly dryRun?: boolean;
  readonly watch?: boolean;
}

const findingsExitCode = 3;

const columns: readonly TableColumn[] = [
  { title: "STATE" },
  { title: "RECORDS", align: "right" },
  { title: "REPAIRED", align: "right", rank: 2 },
  { title: "LOST", align: "right", rank: 1 },
  { title: "FORMAT", rank: 3 },
  { title: "KEY" },
  { title: "PATH", rank: 4 },
];

const watchMs = 2000;

/**
 * Exits with 3 when a finding needs attention, and with 1 when every source was refused. `--watch` repeats the import
 * until an interrupt.
 */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ImportCommandOptions;
  const { host, output, scope, signal } = context;
  if (options.key !== undefined && input.arguments.length > 1) throw usageError("--key takes a single PATH.");
  if (options.watch === true && options.dryRun === true)
    throw usageError("--watch writes; it does not go with --dry-run.");
  // An invalid key, or one of another agent, is refused before the import starts.
  if (options.key !== undefined)
    sessionRef({
      key: options.key,
      namespace: scope.namespace,
      ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}),
    });
  const paths = input.arguments.map((path) => namedPath(host, path));
  const store = await context.openStore("write");
  const pass = { context, store, paths, options, startedAtMs: systemClock.nowMs(), reported: new Set<string>() };
  const first = await importPass(pass, "all");
  if (options.watch !== true) {
    if (options.dryRun !== true) await first.summary.print(context, store);
    if (first.firstRefusal !== null && first.totals.refused === first.totals.sources) throw first.firstRefusal;
    return first.isOdd ? findingsExitCode : 0;
  }
  if (!output.isJson) output.note(`Watching ${paths.join(", ")}; Ctrl-C ends it.`);
  while (!signal.aborted) {
    await systemClock.sleep(watchMs, signal);
    if (!signal.aborted) await importPass(pass, "changed");
  }
  return 0;
}

interface ImportPass {
  readonly context: CommandContext;
  readonly store: SessionStore;
  readonly paths: readonly string[];
  readonly options: ImportCommandOptions;
  readonly startedAtMs: number;
  /** Holds refusals that an earlier pass printed, so that each appears once. */
  readonly reported: Set<string>;
}

interface PassResult {
  readonly totals: ImportTotals;
  readonly summary: ImportSummary;
  readonly firstRefusal: ImportSource["error"];
  readonly isOdd: boolean;
}

/** Imports the current content of the paths. `changed` prints only results that an earlier pass did not print. */
async function importPass(
  { context, store, paths, options, startedAtMs, reported }: ImportPass,
  shown: "all" | "changed",
): Promise<PassResult> {
  const { host, output, scope, signal } = context;
  const address = parseStoreUrl(context.storeUrl, host.workingDirectory);
  using results = new ImportResults();
  const totals = noTotals();
  const summary = new ImportSummary();
  const conflictRemedies: string[] = [];
  let firstRefusal: ImportSource["error"] = null;
  let isOdd = false;
  const imported = importPaths(store, paths, {
    from: options.from ?? "auto",
    // A key asks for a session that was purged before, but not for one that is purged while `--watch` runs.
    ...(options.key === undefined ? {} : { key: options.key, purgedSinceMs: startedAtMs }),
    agentId: scope.agentId,
    namespace: scope.namespace,
    storeRoot: address.scheme === "jsonl" ? address.root : null,
    dryRun: options.dryRun === true,
    signal,
    onProgress: ({ path, records, readBytes, sizeBytes }) =>
      output.progress(
        `importing ${counted(records, "record")}, ${sizeBytes === 0 ? 100 : Math.floor((readBytes / sizeBytes) * 100)} % of ${path}`,
      ),
  });
  try {
    for await (const source of imported) {
      // Most refusals are also findings; printing both would look like two problems.
      const { path, error, findings, state } = source;
      const isKnown = error !== null && reported.has(`${path} ${error.message}`);
      if (error !== null) reported.add(`${path} ${error.message}`);
      if (shown === "changed" && (isKnown || state === "unchanged" || state === "skipped")) continue;
      results.add(source);
      count(totals, source);
      summary.take(source);
      firstRefusal ??= error;
      isOdd ||= state === "refused" || source.lost.length > 0 || needsAttention(findings);
      for (const finding of findings) output.finding(finding);
      if (error !== null && !findings.some(({ message }) => message === error.message))
        output.note(`${path}: ${error.message}`);
      if (hasErrorCode(error, "APPEND_CONFLICT")) conflictRemedies.push(error.remedy);
    }
  } catch (error) {
    const wasDone = options.dryRun === true ? "Nothing was written. Until then it would be: " : "Until then: ";
    if (signal.aborted) output.note(`${wasDone}${totalsText(totals)}`);
    throw error;
  }
  output.clearProgress();
  if (shown === "all" || totals.sources > 0) await print(context, results, totals, options.dryRun === true);
  await output.flush();
  if (totals.records > 0 && options.dryRun !== true) await fillIndex(context, store);
  // If every source was refused, the command throws that error, which prints its remedy.
  if (totals.refused < totals.sources) for (const remedy of conflictRemedies) output.note(remedy);
  return { totals, summary, firstRefusal, isOdd };
}

async function print(
  { output }: CommandContext,
  results: ImportResults,
  totals: ImportTotals,
  isDryRun: boolean,
): Promise<void> {
  if (output.isJson) {
    // The output is one JSON object that may exceed the memory, so it is written in pieces.
    let before = '{"kind":"import","sources":[';
    for (const page of results.pages()) {
      for (const source of page) {
        await output.bytes(Buffer.from(`${before}${jsonLine(source)}`));
        before = ",";
      }
    }
    const opening = before === "," ? "" : before;
    await output.bytes(Buffer.from(`${opening}],"totals":${jsonLine(totals)}}\n`));
    return;
  }
  let isFirst = true;
  for (const page of results.pages()) {
    await output.table(columns, page.map(rowOf), isFirst ? "always" : "never");
    isFirst = false;
  }
  if (totals.sources === 0) await output.table(columns, [], "always");
  output.note(`${isDryRun ? "Nothing was written. It would be: " : ""}${totalsText(totals)}`);
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
