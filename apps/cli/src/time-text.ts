/** Uses one unit: `12 s`, `5 min`, `3 h`, `6 d`, `4 mo`, `2 y`. */
export function ageText(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  const days = Math.floor(seconds / 86_400);
  if (days < 60) return `${days} d`;
  return days < 730 ? `${Math.floor(days / 30.44)} mo` : `${Math.floor(days / 365.25)} y`;
}

/** A `Date` holds no larger value, in milliseconds. */
const mostMs = 8.64e15;

/**
 * Formats a time to the second in the zone of this machine, with its offset: `2026-01-02 04:04:05+01:00`; `-` when
 * unknown.
 */
export function timeText(atMs: number | null): string {
  if (atMs === null || Math.abs(atMs) > mostMs) return "-";
  return localTime(atMs);
}

function localTime(atMs: number): string {
  // `getTimezoneOffset` is negative east of Greenwich.
  const localMinutes = -new Date(atMs).getTimezoneOffset();
  // The last hours of the `Date` range have no local time in some zones, so they are shown in UTC.
  const offsetMinutes = Math.abs(atMs + localMinutes * 60_000) > mostMs ? 0 : localMinutes;
  const minutes = Math.abs(offsetMinutes);
  const two = (value: number): string => String(value).padStart(2, "0");
  const offset = `${offsetMinutes < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  return `${new Date(atMs + offsetMinutes * 60_000).toISOString().replace("T", " ").replace(/\..*/, "")}${offset}`;
}
