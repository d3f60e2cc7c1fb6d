/** A smaller number counts seconds, a larger one milliseconds: 1e11 ms is March 1973, and 1e11 s is the year 5138. */
const firstMilliseconds = 1e11;

/**
 * Reads the time forms of the formats: seconds with a fraction, milliseconds, or ISO text. Null when the value is not a
 * time.
 */
export function readTimeMs(value: unknown): number | null {
  if (typeof value === "number" && Number.isFinite(value)) {
    const ms = Math.round(Math.abs(value) < firstMilliseconds ? value * 1000 : value);
    return isDateMs(ms) ? ms : null;
  }
  if (typeof value !== "string") return null;
  const ms = Date.parse(value);
  return Number.isFinite(ms) ? ms : null;
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** A time beyond 8.64e15 ms from 1970 would make an invalid Date. */
function isDateMs(ms: number): boolean {
  return Math.abs(ms) <= 8.64e15;
}
