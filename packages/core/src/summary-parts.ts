import type { StoredRecord } from "./session-store.ts";
import { throughlineKind } from "./throughline-record.ts";

/** Stands between what a summariser wrote and what was taken from the conversation as it is. */
export const summaryDetailsHeading = "[Taken from the conversation as it was]";

/** What a summariser wrote, without what was added to it: the next summary builds on this, and has the rest made anew. */
export function proseOf(summary: string): string {
  const at = summary.lastIndexOf(`\n\n${summaryDetailsHeading}\n`);
  return (at < 0 ? summary : summary.slice(0, at)).trim();
}

/** Summaries and checkpoints that were written before something they may repeat was redacted. */
export function outdatedSummaryIds(records: readonly StoredRecord[]): ReadonlySet<string> {
  return new Set(
    records.flatMap(({ record }): string[] => {
      if (throughlineKind(record) !== "note") return [];
      const data = record["data"] as { readonly kind?: unknown; readonly summaryIds?: unknown } | null | undefined;
      if (data?.kind !== "summary-outdated" || !Array.isArray(data.summaryIds)) return [];
      return data.summaryIds.filter((id) => typeof id === "string");
    }),
  );
}
