import type { UsageKey, UsageRow, UsageTotals } from "@throughline/usage/internal";
import { grouped, usdText } from "../counted.ts";
import { shownFolder, shownProgram } from "../session-names.ts";
import type { TableColumn } from "../text-table.ts";

const right = { align: "right" } as const;

const totalColumns: readonly TableColumn[] = [
  { title: "CALLS", ...right, rank: 1 },
  { title: "INPUT", ...right },
  { title: "CACHE READ", ...right, rank: 3 },
  { title: "CACHE WRITE", ...right, rank: 4 },
  { title: "OUTPUT", ...right },
  { title: "REASONING", ...right, rank: 5 },
  { title: "TIME", ...right, rank: 6 },
  { title: "COST", ...right },
];

/** Returns the columns of a table whose rows begin with some names. */
export function usageColumns(titles: readonly string[]): readonly TableColumn[] {
  return [...titles.map((title): TableColumn => ({ title, least: 12, cut: "end" })), ...totalColumns];
}

export function totalCells(totals: UsageTotals): readonly string[] {
  const { calls, input, cacheRead, cacheWrite, output, reasoning, seconds } = totals;
  const counts = [calls, input, cacheRead, cacheWrite, output, reasoning].map(grouped);
  return [...counts, durationText(seconds), costText(totals)];
}

/** Returns for example `$1.23`; `$1.23+` when the cost of some calls is unknown, `-` when it is unknown of all. */
export function costText({ costUsd, unpricedCalls }: Pick<UsageTotals, "costUsd" | "unpricedCalls">): string {
  if (costUsd === null) return "-";
  return `${usdText(costUsd)}${unpricedCalls === 0 ? "" : "+"}`;
}

/** Returns for example `45 s`, `12 min` or `3 h 5 min`. */
export function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function groupCells({ group, name }: UsageRow, by: readonly UsageKey[], userHome: string): readonly string[] {
  return by.map((key) => {
    const value = group[key] ?? null;
    if (key === "session") return name ?? value ?? "";
    if (key === "program") return shownProgram(value);
    if (key === "folder") return shownFolder(value, userHome) || "unknown";
    return value ?? "unknown";
  });
}
