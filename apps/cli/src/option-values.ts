import { nearestName } from "@throughline/core/internal";
import { InvalidArgumentError } from "commander";

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** A whole number from 1. */
export function parseCount(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new InvalidArgumentError("It must be a whole number from 1.");
  return value;
}

/** A whole number from 0. */
export function parseNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 0.");
  return Number(text);
}

/** A whole number from 1, or `all`, which is infinity. */
export function parseLimit(text: string): number {
  if (text === "all") return Number.POSITIVE_INFINITY;
  try {
    return parseCount(text);
  } catch {
    throw new InvalidArgumentError("It must be a whole number from 1, or all.");
  }
}

/** Milliseconds of an age: `90s`, `30m`, `12h`, `2d`, `1w`. */
export function parseAge(text: string): number {
  const match = /^(\d{1,9})([smhdw])$/.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be an age such as 90s, 30m, 12h, 30d or 2w.");
  return Number(match[1]) * (unitMs[match[2] ?? ""] ?? 0);
}

/** Bytes: a whole number, with `kB`, `MB`, `GB` (thousands) or `KiB`, `MiB`, `GiB` behind it where wanted. */
export function parseBytes(text: string): number {
  const match = /^(\d{1,12})\s?(?:([kmg])(i?)b?)?b?$/i.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be a number of bytes, such as 500MB or 2GiB.");
  const power = { k: 1, m: 2, g: 3 }[(match[2] ?? "").toLowerCase() as "k" | "m" | "g"] ?? 0;
  return Number(match[1]) * (match[3] === "" || match[3] === undefined ? 1000 : 1024) ** power;
}

/** UTC milliseconds of an ISO time, which is one of this machine's zone where it has no offset, or of so long ago: `90s`, `30m`, `12h`, `2d`, `1w`. */
export function parseTime(text: string): number {
  const ago = /^(\d{1,9})([smhdw])$/.exec(text);
  if (ago) return Date.now() - Number(ago[1]) * (unitMs[ago[2] ?? ""] ?? 0);
  // A day alone begins at midnight here, as the times are that are shown; the language would take it for one of UTC.
  const day = /^\d{4}-\d{2}(-\d{2})?$/.exec(text);
  const time = day === null ? text : `${text}${day[1] === undefined ? "-01" : ""}T00:00`;
  const atMs = /^\d{4}-\d{2}/.test(text) ? Date.parse(time) : Number.NaN;
  if (!Number.isFinite(atMs))
    throw new InvalidArgumentError("It must be an ISO time, or an age such as 30m, 12h or 2d.");
  return atMs;
}

/** One of the words. */
export function parseChoice(...choices: readonly string[]): (text: string) => string {
  return (text) => {
    if (choices.includes(text)) return text;
    const near = nearestName(text, choices);
    const hint = near === null ? "" : ` Did you mean ${near}?`;
    throw new InvalidArgumentError(`It must be one of ${choices.join(", ")}.${hint}`);
  };
}
