import type { ReachableThreshold } from "./reachable-thresholds.ts";

const mark = "[SYSTEM: memory flush]";

/**
 * Fills in the current percentage and the local date. A marked prompt gets the mark unless it starts with another one.
 */
export function promptText(
  { prompt, injectAs }: Pick<ReachableThreshold, "prompt" | "injectAs">,
  percent: number,
  nowMs: number,
  timeZone?: string,
): string {
  const filled = prompt
    .replaceAll("{percent}", String(Math.floor(percent)))
    .replaceAll("YYYY-MM-DD", localDate(nowMs, timeZone));
  return injectAs === "marked" && !filled.startsWith("[SYSTEM:") ? `${mark}\n${filled}` : filled;
}

function localDate(nowMs: number, timeZone?: string): string {
  const format = new Intl.DateTimeFormat("en", {
    ...(timeZone === undefined ? {} : { timeZone }),
    calendar: "gregory",
    numberingSystem: "latn",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  });
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  return `${(parts.get("year") ?? "").padStart(4, "0")}-${parts.get("month")}-${parts.get("day")}`;
}
