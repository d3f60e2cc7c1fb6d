import { ThroughlineError } from "@throughline/core";

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * Converts a duration such as `90m`, `12h`, `30d` or `2w` to milliseconds; a number is milliseconds already.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export function readDurationMs(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  const [, amount, unit] =
    typeof value === "string" ? (/^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*$/i.exec(value) ?? []) : [];
  const factor = unit === undefined ? undefined : unitMs[unit.toLowerCase()];
  if (amount !== undefined && factor !== undefined) return Number(amount) * factor;
  throw new ThroughlineError(
    "CONFIG_INVALID",
    `${name} is ${JSON.stringify(value) ?? String(value)}: a duration such as 90m, 12h, 30d or 2w is meant.`,
    { details: { key: name, value } },
  );
}
