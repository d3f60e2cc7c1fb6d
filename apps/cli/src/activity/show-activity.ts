import type { SessionStore } from "@throughline/core";
import { openStoreUsage } from "../usage/usage-file.ts";
import type { CommandContext } from "../command.ts";
import { counted, grouped } from "../counted.ts";
import type { Output } from "../output.ts";
import { shownFolder, shownName, shownProgram } from "../session-names.ts";
import type { TableColumn } from "../text-table.ts";
import { costText } from "../usage/usage-table.ts";
import { activityJson, activityReport, type ActivityReport, type ActivityTotals } from "./activity-report.ts";

const mostPlaces = 20;
const barCells = 30;

const placeColumns: readonly TableColumn[] = [
  { title: "PROGRAM", least: 11, cut: "end" },
  { title: "FOLDER", least: 12, cut: "start" },
  { title: "SESSIONS", align: "right" },
  { title: "MESSAGES", align: "right" },
  { title: "TOOLS", align: "right" },
  { title: "FAILED", align: "right", rank: 1 },
  { title: "COST", align: "right" },
];
const sessionColumns: readonly TableColumn[] = [
  { title: "NAME", least: 24, cut: "end" },
  { title: "PROGRAM", least: 11, givesFirst: true, cut: "end", rank: 1 },
  { title: "FOLDER", least: 10, cut: "start", rank: 2 },
  { title: "MESSAGES", align: "right" },
  { title: "COST", align: "right" },
];

/** Prints what happened in the sessions of the scope. Records that no earlier answer counted are read. */
export async function showActivity(context: CommandContext): Promise<void> {
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const reader = openStoreUsage(context, store);
  try {
    const agent = scope.isAgentGiven ? { agentId: scope.agentId } : {};
    output.progress("reading the sessions");
    const { sessions, unread } = await reader.activity({ namespace: scope.namespace, ...agent, signal });
    output.clearProgress();
    const report = activityReport(sessions, Date.now());
    if (output.isJson) await output.object({ kind: "activity", ...activityJson(report) });
    else await printReport(context, store, report);
    await output.flush();
    if (unread.length > 0)
      output.note(`${counted(unread.length, "session")} cannot be read as a whole; \`throughline doctor\` says why.`);
  } finally {
    reader.close();
  }
}

async function printReport(context: CommandContext, store: SessionStore, report: ActivityReport): Promise<void> {
  const { host, output, signal } = context;
  const { userHome } = host;
  const { places, longest, mostExpensive, days, ...total } = report;
  const rows = places
    .slice(0, mostPlaces)
    .map(({ program, folder, ...sums }) => [shownProgram(program), shownFolder(folder, userHome), ...countCells(sums)]);
  await output.table(placeColumns, [...rows, ["all", "", ...countCells(total)]]);
  if (places.length > mostPlaces) await output.line(`${places.length - mostPlaces} more folders (--json has all)`);
  for (const [title, sessions] of [
    ["Longest", longest],
    ["Most expensive", mostExpensive],
  ] as const) {
    if (sessions.length === 0) continue;
    await output.line("");
    await output.line({ text: title, style: "bold" });
    const lines: (readonly string[])[] = [];
    for (const { state, program, folder, messages, ...cost } of sessions)
      lines.push([
        await shownName(store, state, signal),
        shownProgram(program),
        shownFolder(folder, userHome),
        grouped(messages),
        costText(cost),
      ]);
    await output.table(sessionColumns, lines);
  }
  await printDays(output, days);
}

function countCells({ sessions, messages, toolCalls, failedTools, ...cost }: ActivityTotals): readonly string[] {
  return [...[sessions, messages, toolCalls, failedTools].map(grouped), costText(cost)];
}

async function printDays(output: Output, days: ActivityReport["days"]): Promise<void> {
  const most = Math.max(...days.map(({ messages }) => messages));
  await output.line("");
  await output.line({ text: "Last 14 days", style: "bold" });
  if (most === 0) return output.line("No messages.");
  for (const { day, sessions, messages } of days) {
    if (messages === 0) await output.line(day);
    else {
      // A day with a single message is not a day without any.
      const bar = "█".repeat(Math.max(1, Math.round((messages / most) * barCells)));
      const text = `${counted(messages, "message")} in ${counted(sessions, "session")}`;
      await output.line(`${day}  `, { text: bar.padEnd(barCells), style: "cyan" }, `  ${text}`);
    }
  }
}
