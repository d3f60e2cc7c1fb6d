import type { ContextGauge, ContextSize } from "@throughline/http-api/internal/context-size";
import { grouped } from "./counted.ts";
import { ageText, timeText } from "./time-text.ts";

const barCells = 40;

/**
 * Formats the context size for people. A `~` marks a number that includes an estimate. The parts and the free tokens
 * add up to the window.
 */
export function contextSizeLines(
  { gauge, breakdown, countedAtMs }: ContextSize,
  { windowSource, nowMs }: { readonly windowSource: string; readonly nowMs: number },
): readonly string[] {
  const { tokens, windowTokens, percent } = gauge;
  const sign = gauge.source === "actual" ? "" : "~";
  const share = percent === null ? "" : ` (${percent} %)`;
  const window = windowTokens === null ? "tokens, window unknown (--window N)" : `/ ${grouped(windowTokens)} tokens`;
  const parts: readonly (readonly [string, number])[] = [
    [countedAtMs === null ? "system" : "system, tools", breakdown.systemTokens],
    ["tools", breakdown.toolsTokens],
    ["summary", breakdown.summaryTokens],
    ["messages", breakdown.messageTokens],
    ["tool results", breakdown.toolResultTokens],
    ["free", windowTokens === null ? 0 : Math.max(0, windowTokens - tokens)],
  ];
  const shown = parts.filter(([, part]) => part > 0);
  return [
    `${sign}${grouped(tokens)} ${window}${share}`,
    ...(percent === null ? [] : [bar(percent)]),
    ...shown.map(([name, part]) => `  ${name.padEnd(13)} ${grouped(part).padStart(11)}`),
    ...sourceLines(gauge, countedAtMs, nowMs),
    ...(windowTokens === null ? [] : [`window: ${windowSource}`]),
  ];
}

function sourceLines(
  { source, lowTokens, highTokens }: ContextGauge,
  countedAtMs: number | null,
  nowMs: number,
): readonly string[] {
  const age = countedAtMs === null ? "" : `, ${countedText(countedAtMs, nowMs)}`;
  const band = `${grouped(lowTokens)} to ${grouped(highTokens)}`;
  const notInLog = "system prompt and tools are not in the log and not counted";
  switch (source) {
    case "actual":
      return [`counted by the provider at the last call${age}`];
    case "actual+delta":
      return [
        `counted by the provider at the last valid call${age}`,
        `and an estimate of the records after it (${band})`,
      ];
    case "tokenizer":
      return [`estimated (${band})`, notInLog];
    case "heuristic":
      return [`estimated roughly (${band})`, notInLog];
  }
}

/** Omits the age if it is already a date. */
function countedText(atMs: number, nowMs: number): string {
  const age = ageText(atMs, nowMs);
  return `${timeText(atMs)}${/^\d{4}-/.test(age) ? "" : ` (${age})`}`;
}

function bar(percent: number): string {
  const filled = Math.min(barCells, Math.round((barCells * percent) / 100));
  return `[${"#".repeat(filled)}${"-".repeat(barCells - filled)}]`;
}
