/** Below this a number counts seconds, from it on milliseconds: 1e11 ms is March 1973, 1e11 s the year 5138. */
const firstMilliseconds = 1e11;

/** A time as the formats write it: seconds with a fraction, milliseconds, or ISO text. Null when it is none. */
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

/** What a Date can hold. */
function isDateMs(ms: number): boolean {
  return Math.abs(ms) <= 8.64e15;
}
