import { sessionRef } from "@throughline/core";
import { needsAttention } from "@throughline/inspect";
import { importPaths } from "@throughline/transfer";
import type { ImportOptions, ImportSource } from "@throughline/transfer";
import { resolve } from "node:path";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { parseStoreUrl } from "../store-url.ts";
import type { TableColumn } from "../text-table.ts";

interface ImportCommandOptions {
  readonly from?: NonNullable<ImportOptions["from"]>;
  readonly key?: string;
  readonly dryRun?: boolean;
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

/** Imports files and directories; ends with 3 when something in them needs a look, with 1 when nothing could be read. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ImportCommandOptions;
  const { host, output, scope, signal } = context;
  if (options.key !== undefined && input.arguments.length > 1) throw usageError("--key takes a single PATH.");
  // The door: a key that cannot be one, or names another agent than the one that was given, is refused.
  if (options.key !== undefined)
    sessionRef({
      key: options.key,
      namespace: scope.namespace,
      ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}),
    });
  const store = await context.openStore("write");
  const address = parseStoreUrl(context.storeUrl, host.workingDirectory);
  const paths = input.arguments.map((path) => resolve(host.workingDirectory, path));
  const sources: ImportSource[] = [];
  const imported = importPaths(store, paths, {
    from: options.from ?? "auto",
    ...(options.key === undefined ? {} : { key: options.key }),
    agentId: scope.agentId,
    namespace: scope.namespace,
    storeRoot: address.scheme === "jsonl" ? address.root : null,
    dryRun: options.dryRun === true,
    signal,
    onProgress: ({ path, records, readBytes, sizeBytes }) =>
      output.progress(
        `importing ${path}: ${records} records, ${sizeBytes === 0 ? 100 : Math.floor((readBytes / sizeBytes) * 100)} %`,
      ),
  });
  for await (const source of imported) {
    sources.push(source);
    for (const finding of source.findings) output.finding(finding);
    // Most refusals are findings as well; said twice they would look like two.
    const { path, error, findings } = source;
    if (error !== null && !findings.some(({ message }) => message === error.message))
      output.note(`${path}: ${error.message}`);
  }
  await print(context, sources, options.dryRun === true);
  await output.flush();
  const refused = sources.filter(({ state }) => state === "refused");
  const [first] = refused;
  if (first?.error != null && refused.length === sources.length) throw first.error;
  const isOdd = refused.length > 0 || sources.some(({ lost, findings }) => lost.length > 0 || needsAttention(findings));
  return isOdd ? findingsExitCode : 0;
}

async function print({ output }: CommandContext, sources: readonly ImportSource[], isDryRun: boolean): Promise<void> {
  const totals = totalsOf(sources);
  if (output.isJson) {
    const shown = sources.map(({ path, format, key, sessionId, state, records, repaired, lost }) => ({
      path,
      format,
      key,
      sessionId,
      state,
      records,
      repaired,
      lost,
    }));
    await output.object({ kind: "import", sources: shown, totals });
    return;
  }
  const rows = sources.map(({ state, records, repaired, lost, format, key, path }) => [
    state,
    String(records),
    String(repaired),
    String(lost.length),
    format,
    key ?? "",
    path,
  ]);
  await output.table(columns, rows);
  const { imported, grown, unchanged, skipped, refused, records, repaired, lost } = totals;
  const states = `${imported} imported, ${grown} grown, ${unchanged} unchanged, ${skipped} skipped, ${refused} refused`;
  output.note(
    `${isDryRun ? "Nothing was written. It would be: " : ""}${states}; ${counted(records, "record")}, ${repaired} repaired, ${lost} lost.`,
  );
}

function totalsOf(sources: readonly ImportSource[]): {
  readonly sources: number;
  readonly imported: number;
  readonly grown: number;
  readonly unchanged: number;
  readonly skipped: number;
  readonly refused: number;
  readonly records: number;
  readonly repaired: number;
  readonly lost: number;
} {
  const count = (state: ImportSource["state"]): number => sources.filter((source) => source.state === state).length;
  return {
    sources: sources.length,
    imported: count("imported"),
    grown: count("grown"),
    unchanged: count("unchanged"),
    skipped: count("skipped"),
    refused: count("refused"),
    records: sources.reduce((sum, { records }) => sum + records, 0),
    repaired: sources.reduce((sum, { repaired }) => sum + repaired, 0),
    lost: sources.reduce((sum, { lost }) => sum + lost.length, 0),
  };
}
