import { compactionRow, plannedCompaction } from "@throughline/http-api/internal/compaction-json";
import type { CompactionRow } from "@throughline/http-api/internal/compaction-json";
import { compactionReports, compactionText } from "../agent/compaction-report.ts";
import { inSession } from "../agent/in-session.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { busyWith } from "../wait-for-turn.ts";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output, signal } = context;
  const isDryRun = input.options["dryRun"] === true;
  return inSession(context, input, { isDryRun, reported: compactionReports }, async ({ store, session, ref }) => {
    const names = { key: session.key, sessionId: session.sessionId };
    let row: CompactionRow;
    let messages: number | null = null;
    if (isDryRun) {
      const plan = await session.planCompaction({ signal });
      if (plan.kind === "nothing") messages = plan.messages;
      row = await plannedCompaction(store, ref, names, plan);
    } else {
      output.progress(`compacting ${session.key}`);
      const result = await session.compact({ signal });
      if (result.kind === "busy") {
        throw busyWith(result.turn);
      }
      if (result.kind === "nothing") messages = result.messages;
      row = await compactionRow(store, ref, names, result);
    }
    output.clearProgress();
    if (output.isJson) await output.object(row);
    else await output.line(compactionText(row, messages));
    return 0;
  });
}
