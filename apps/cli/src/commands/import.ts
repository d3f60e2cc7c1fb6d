import { openSync } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { sessionRef, type SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { importPaths, type ImportOptions } from "@throughline/transfer";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { type ImportReport, reportImport } from "../import-report.ts";
import { namedPath } from "../named-path.ts";
import { reportPasses } from "../sync/report-passes.ts";

interface ImportCommandOptions {
  readonly from?: NonNullable<ImportOptions["from"]>;
  readonly key?: string;
  readonly dryRun?: boolean;
  readonly watch?: boolean;
}

const findingsExitCode = 3;

/**
 * Exits with 3 when a finding needs attention, and with 1 when every source was refused. `--watch` imports what is added
 * until an interrupt.
 */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ImportCommandOptions;
  const { host, scope } = context;
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
  if (options.watch === true) return watch(context, store, paths, options);
  const { totals, summary, firstRefusal, isOdd } = await importOnce(context, store, paths, options);
  if (options.dryRun !== true) await summary.print(context, store);
  if (firstRefusal !== null && totals.refused === totals.sources) throw firstRefusal;
  return isOdd ? findingsExitCode : 0;
}

function importOnce(
  context: CommandContext,
  store: SessionStore,
  paths: readonly string[],
  options: ImportCommandOptions,
): Promise<ImportReport> {
  const { host, scope, signal } = context;
  const address = parseStoreUrl(context.storeUrl, host.workingDirectory);
  const isDryRun = options.dryRun === true;
  const sources = importPaths(store, paths, {
    ...importOptions(options),
    agentId: scope.agentId,
    namespace: scope.namespace,
    storeRoot: address.scheme === "jsonl" ? address.root : null,
    dryRun: isDryRun,
    signal,
    onProgress: progressOf(context),
  });
  return reportImport(context, store, sources, { kind: "import", shown: "all", isDryRun, reported: new Set() });
}

async function watch(
  context: CommandContext,
  store: SessionStore,
  paths: readonly string[],
  options: ImportCommandOptions,
): Promise<number> {
  await using sync = openSync(context, {
    openStore: () => Promise.resolve(store),
    places: () => Promise.resolve(paths),
    named: paths,
    // The paths that a person names differ from run to run.
    remembers: false,
    options: importOptions(options),
    onNote: (message) => context.output.note(message),
    progress: { step: progressOf(context) },
  });
  await reportPasses(context, store, sync, { kind: "import", watched: paths.join(", ") });
  return 0;
}

/** A key asks for a session that was purged before, but not for one that is purged while `--watch` runs. */
function importOptions({
  from = "auto",
  key,
}: ImportCommandOptions): Pick<ImportOptions, "from" | "key" | "purgedSinceMs"> {
  return { from, ...(key === undefined ? {} : { key, purgedSinceMs: systemClock.nowMs() }) };
}

function progressOf({ output }: CommandContext): NonNullable<ImportOptions["onProgress"]> {
  return ({ path, records, readBytes, sizeBytes }) =>
    output.progress(
      `importing ${counted(records, "record")}, ${sizeBytes === 0 ? 100 : Math.floor((readBytes / sizeBytes) * 100)} % of ${path}`,
    );
}
