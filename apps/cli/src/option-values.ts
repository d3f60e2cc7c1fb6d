import { nearestName } from "@throughline/core/internal";
import type { UsageKey } from "@throughline/usage/internal";
import { InvalidArgumentError } from "commander";

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

export function parseCount(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new InvalidArgumentError("It must be a whole number from 1.");
  return value;
}

export function parseNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 0.");
  return Number(text);
}

/** Returns infinity for `all`. */
export function parseLimit(text: string): number {
  if (text === "all") return Number.POSITIVE_INFINITY;
  try {
    return parseCount(text);
  } catch {
    throw new InvalidArgumentError("It must be a whole number from 1, or all.");
  }
}

/** Returns milliseconds for an age such as `90s`, `30m`, `12h`, `2d` or `1w`. */
export function parseAge(text: string): number {
  const match = /^(\d{1,9})([smhdw])$/.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be an age such as 90s, 30m, 12h, 30d or 2w.");
  return Number(match[1]) * (unitMs[match[2] ?? ""] ?? 0);
}

/** Accepts `kB`, `MB`, `GB` as powers of 1000 and `KiB`, `MiB`, `GiB` as powers of 1024. */
export function parseBytes(text: string): number {
  const match = /^(\d{1,12})\s?(?:([kmg])(i?)b?)?b?$/i.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be a number of bytes, such as 500MB or 2GiB.");
  const power = { k: 1, m: 2, g: 3 }[(match[2] ?? "").toLowerCase() as "k" | "m" | "g"] ?? 0;
  return Number(match[1]) * (match[3] === "" || match[3] === undefined ? 1000 : 1024) ** power;
}

/**
 * Returns UTC milliseconds. An ISO time without an offset is in the zone of this machine. An age such as `90s`, `30m`,
 * `12h`, `2d` or `1w` counts back from now.
 */
export function parseTime(text: string): number {
  const ago = /^(\d{1,9})([smhdw])$/.exec(text);
  if (ago) return Date.now() - Number(ago[1]) * (unitMs[ago[2] ?? ""] ?? 0);
  // A date alone means local midnight, because printed times are local; `Date.parse` would assume UTC.
  const day = /^\d{4}-\d{2}(-\d{2})?$/.exec(text);
  const time = day === null ? text : `${text}${day[1] === undefined ? "-01" : ""}T00:00`;
  const atMs = /^\d{4}-\d{2}/.test(text) ? Date.parse(time) : Number.NaN;
  if (!Number.isFinite(atMs))
    throw new InvalidArgumentError("It must be an ISO time, or an age such as 30m, 12h or 2d.");
  return atMs;
}

export function parseChoice(...choices: readonly string[]): (text: string) => string {
  return (text) => {
    if (choices.includes(text)) return text;
    const near = nearestName(text, choices);
    const hint = near === null ? "" : ` Did you mean ${near}?`;
    throw new InvalidArgumentError(`It must be one of ${choices.join(", ")}.${hint}`);
  };
}

export const usageKeys: readonly UsageKey[] = [
  "day",
  "week",
  "month",
  "session",
  "model",
  "program",
  "folder",
  "agent",
];

/** Accepts one or two names, separated by a comma. */
export function parseUsageKeys(text: string): readonly UsageKey[] {
  const parse = parseChoice(...usageKeys);
  const names = text.split(",").map((name) => parse(name.trim()) as UsageKey);
  if (new Set(names).size === names.length && names.length <= 2) return names;
  throw new InvalidArgumentError("It must be one name, or two different names with a comma between.");
}
