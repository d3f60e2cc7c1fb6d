import { ThroughlineError } from "@throughline/core";

const quarterMs = 15 * 60 * 1000;

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Returns a function that names the day, the week or the month of a quarter of an hour. A week begins on Monday.
 *
 * @param timeZone the IANA name of the zone. Default: that of the system
 * @throws {ThroughlineError} INPUT_INVALID for an unknown zone
 */
export function timeLabels(timeZone?: string): (unit: "day" | "week" | "month", quarter: number) => string {
  const format = dateFormat(timeZone);
  return (unit, quarter) => {
    // Swedish dates are written as YYYY-MM-DD.
    const day = format.format(startOf(quarter));
    if (unit === "month") return day.slice(0, 7);
    if (unit === "day") return day;
    const atMs = Date.parse(`${day}T00:00:00Z`);
    const sinceMonday = (new Date(atMs).getUTCDay() + 6) % 7;
    return new Date(atMs - sinceMonday * dayMs).toISOString().slice(0, 10);
  };
}

function dateFormat(timeZone: string | undefined): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeZone });
  } catch {
    const message = `There is no time zone ${JSON.stringify(timeZone)}.`;
    throw new ThroughlineError("INPUT_INVALID", message, { details: { timeZone } });
  }
}

/** True for what states no time: readers of transcripts date such records 1970. */
export function isUndated(quarter: number): boolean {
  return quarter === 0;
}

/** Returns the start of a quarter of an hour, in milliseconds since 1970. */
export function startOf(quarter: number): number {
  return quarter * quarterMs;
}

/** Returns the quarter of an hour of a time in milliseconds since 1970. */
export function quarterOf(atMs: number): number {
  return Math.floor(atMs / quarterMs);
}
