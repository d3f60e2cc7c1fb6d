import { assertKnownOptions, optionKinds } from "@throughline/core/internal";
import type { Gauge } from "./gauge.ts";

/** Options of `contextLine`. */
export interface ContextLineOptions {
  /** False leaves the line out of the system prompt. @default true */
  readonly showInSystemPrompt?: boolean;
}

/**
 * The line a system prompt carries: `[Context: 156k/200k tokens (78%)]`, thousands and percent rounded down. Without
 * a known window `[Context: 156k tokens]`. Null when it is switched off.
 */
export function contextLine(gauge: Gauge, options: ContextLineOptions = {}): string | null {
  assertKnownOptions<ContextLineOptions>("contextLine", options, { showInSystemPrompt: optionKinds.flag });
  const { showInSystemPrompt = true } = options;
  if (!showInSystemPrompt) return null;
  const { tokens, windowTokens, displayPercent } = gauge;
  if (windowTokens === null || displayPercent === null) return `[Context: ${thousands(tokens)} tokens]`;
  return `[Context: ${thousands(tokens)}/${thousands(windowTokens)} tokens (${Math.floor(displayPercent)}%)]`;
}

function thousands(tokens: number): string {
  return `${Math.floor(tokens / 1000)}k`;
}

const barCells = 30;

/** What `/context` prints: the sizes, then a bar of 30 cells; a single line that says so when the window is unknown. */
export function contextReport(gauge: Gauge): readonly string[] {
  const { tokens, windowTokens, displayPercent } = gauge;
  const used = `Context usage: ~${grouped(tokens)}`;
  if (windowTokens === null || displayPercent === null) return [`${used} tokens (window unknown)`];
  const filled = Math.floor((barCells * displayPercent) / 100);
  const bar = "#".repeat(filled) + "-".repeat(barCells - filled);
  return [`${used} / ${grouped(windowTokens)} tokens`, `[${bar}] ${displayPercent.toFixed(1)}%`];
}

function grouped(tokens: number): string {
  return tokens.toLocaleString("en-US");
}
