import { assertKnownOptions, optionKinds } from "@throughline/core/internal";
import type { Gauge } from "./gauge.ts";

/** Configures `contextLine`. */
export interface ContextLineOptions {
  /** Adds the line to the system prompt; false leaves it out. @default true */
  readonly showInSystemPrompt?: boolean | undefined;
}

/**
 * Returns the line for the system prompt, such as `[Context: 156k/200k tokens (78%)]`. Thousands and percent are
 * rounded down. Without a known window the line is `[Context: 156k tokens]`. Returns null when `showInSystemPrompt` is
 * false.
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

/**
 * Returns the lines that `/context` prints: the sizes, then a bar of 30 cells. If the window is unknown, a single line
 * states this.
 */
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
