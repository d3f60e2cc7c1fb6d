import { quote } from "@throughline/core/internal";
import type { UsageKey, UsageQuery, UsageReader } from "@throughline/usage/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted, usdText } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { rowFilter, type SessionFilter } from "../session-filter.ts";
import { timeText } from "../time-text.ts";
import { printStatusLine } from "../usage/status-line.ts";
import { type PrintedReport, remoteUsage } from "../usage/remote-usage.ts";
import { openStoreUsage } from "../usage/usage-file.ts";
import { groupCells, totalCells, usageColumns } from "../usage/usage-table.ts";

interface UsageOptions extends SessionFilter {
  readonly by?: readonly UsageKey[];
  readonly since?: number;
  readonly until?: number;
  readonly model?: string;
  readonly blocks?: boolean;
  readonly statusline?: boolean;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as UsageOptions;
  assertOneForm(options);
  if (options.statusline === true) {
    await printStatusLine(context);
    return 0;
  }
  const query = queryOf(context, options);
  const remote = options.blocks === true ? null : await remoteUsage(context, query, options);
  if (remote !== null) {
    await printReport(context, remote, query.by);
    return 0;
  }
  const store = await context.openStore("read");
  const reader = openStoreUsage(context, store);
  try {
    if (options.blocks === true) await printBlocks(context, reader, query);
    else {
      context.output.progress("counting the calls of new records");
      const report = await reader.report(query);
      context.output.clearProgress();
      await printReport(context, report, query.by);
    }
  } finally {
    reader.close();
  }
  return 0;
}

/** @throws {ThroughlineError} USAGE */
function assertOneForm({ by, blocks, statusline }: UsageOptions): void {
  const given = [by !== undefined && "--by", blocks === true && "--blocks", statusline === true && "--statusline"];
  const [one, other] = given.filter((flag) => flag !== false);
  if (one !== undefined && other !== undefined) throw usageError(`${one} and ${other} exclude each other.`);
}

function queryOf(context: CommandContext, options: UsageOptions): UsageQuery & { readonly by: readonly UsageKey[] } {
  const { scope, signal, host } = context;
  const { by = ["day"], since, until, model } = options;
  return {
    by,
    namespace: scope.namespace,
    signal,
    ...(options.program === undefined && options.folder === undefined ? {} : { isWanted: rowFilter(host, options) }),
    ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}),
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    ...(model === undefined ? {} : { model }),
  };
}

async function printReport(
  { output, host }: CommandContext,
  report: PrintedReport,
  by: readonly UsageKey[],
): Promise<void> {
  const { rows, total, unpricedModels, pricesAsOf } = report;
  for (const { key, error } of report.unread) output.note(`${quote(key)} is not counted: ${error.message}`);
  if (output.isJson) {
    for (const row of rows) await output.object({ kind: "usage", ...row });
    await output.object({ kind: "usageTotal", ...total, unpricedModels, pricesAsOf });
    return output.end(rows.length + 1);
  }
  const columns = usageColumns(by.map((key) => key.toUpperCase()));
  const cells = rows.map((row) => [...groupCells(row, by, host.userHome), ...totalCells(row)]);
  const names = by.map((_, index) => (index === 0 ? "total" : ""));
  await output.table(columns, [...cells, [...names, ...totalCells(total)]]);
  await output.flush();
  for (const text of remarks(report)) output.note(text);
}

/** Explains what the sums cannot show. */
function remarks({ total, unpricedModels, pricesAsOf }: PrintedReport): readonly string[] {
  const { calls, statedUsd, unpricedCalls, doubtfulCalls } = total;
  if (calls === 0) return ["No calls of models. `throughline import` reads the transcripts of other programs."];
  const models = unpricedModels.map((model) => model ?? "a model that is not named").join(", ");
  return [
    `Prices of ${pricesAsOf}.`,
    ...(statedUsd === 0 ? [] : [`${usdText(statedUsd)} of it is the cost that programs stated themselves.`]),
    ...(unpricedCalls === 0
      ? []
      : [
          `The cost lacks ${counted(unpricedCalls, "call")} of ${models}: no price is known. Set \`prices\` in the configuration.`,
        ]),
    ...(doubtfulCalls === 0 ? [] : [`${counted(doubtfulCalls, "call")} with impossible counts left out.`]),
  ];
}

async function printBlocks({ output }: CommandContext, reader: UsageReader, query: UsageQuery): Promise<void> {
  const blocks = await reader.blocks(query);
  if (output.isJson) {
    for (const block of blocks) await output.object({ kind: "usageBlock", ...block });
    return output.end(blocks.length);
  }
  const rows = blocks.map((block) => [timeText(block.startMs), timeText(block.endMs), ...totalCells(block)]);
  await output.table(usageColumns(["FROM", "TO"]), rows);
}
