/** Returns the newest moment at or before `nowMs` when clocks of the time zone showed the hour. */
export function lastDailyBoundaryMs(nowMs: number, atHour: number, timeZone: string): number {
  const today = wallTime(nowMs, timeZone);
  for (const daysBack of [0, 1, 2]) {
    const boundaryMs = instantOf({ ...today, day: today.day - daysBack, hour: atHour }, timeZone);
    if (boundaryMs <= nowMs) return boundaryMs;
  }
  // This line is unreachable: two days back lies in the past in every zone.
  return nowMs;
}

/** Returns the first moment after `nowMs` when clocks of the time zone show the hour. */
export function nextDailyBoundaryMs(nowMs: number, atHour: number, timeZone: string): number {
  const today = wallTime(nowMs, timeZone);
  for (const daysOn of [0, 1]) {
    const boundaryMs = instantOf({ ...today, day: today.day + daysOn, hour: atHour }, timeZone);
    if (boundaryMs > nowMs) return boundaryMs;
  }
  return instantOf({ ...today, day: today.day + 2, hour: atHour }, timeZone);
}

interface WallTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

/**
 * Returns the moment when a clock shows the full hour. Clocks skip an hour in spring; the first moment after the gap
 * replaces it.
 */
function instantOf({ year, month, day, hour }: WallTime, timeZone: string): number {
  const asUtcMs = Date.UTC(year, month - 1, day, hour);
  const candidates = [-1, 1].map((days) => {
    const nearMs = asUtcMs + days * 24 * 3_600_000;
    return asUtcMs - (asUtcMsOf(wallTime(nearMs, timeZone)) - nearMs);
  });
  const valid = candidates.filter((ms) => asUtcMsOf(wallTime(ms, timeZone)) === asUtcMs);
  return valid.length > 0 ? Math.min(...valid) : Math.max(...candidates);
}

function asUtcMsOf({ year, month, day, hour, minute, second }: WallTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function wallTime(ms: number, timeZone: string): WallTime {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(Math.floor(ms / 1000) * 1000);
  const part = (type: string): number => Number(parts.find((found) => found.type === type)?.value);
  return {
    year: part("year"),
    month: part("month"),
    day: part("day"),
    hour: part("hour"),
    minute: part("minute"),
    second: part("second"),
  };
}
