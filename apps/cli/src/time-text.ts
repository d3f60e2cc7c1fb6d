/** How long ago, in one unit: `12 s`, `5 min`, `3 h`, `6 d`; older than 60 days: the date. */
export function ageText(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 60 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return localTime(atMs).slice(0, 10);
}

/** A point in time to the second in the zone of this machine, with its offset: `2026-01-02 04:04:05+01:00`; `-` when unknown. */
export function timeText(atMs: number | null): string {
  if (atMs === null || Math.abs(atMs) > 8.64e15) return "-";
  return localTime(atMs);
}

function localTime(atMs: number): string {
  // East of Greenwich the method's minutes are negative.
  const offsetMinutes = -new Date(atMs).getTimezoneOffset();
  const shifted = atMs + offsetMinutes * 60_000;
  // The last hours that a Date can hold have no local time in every zone.
  if (Math.abs(shifted) > 8.64e15) return `${new Date(atMs).toISOString().replace("T", " ").replace(/\..*/, "")}+00:00`;
  const minutes = Math.abs(offsetMinutes);
  const two = (value: number): string => String(value).padStart(2, "0");
  const offset = `${offsetMinutes < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  return `${new Date(shifted).toISOString().replace("T", " ").replace(/\..*/, "")}${offset}`;
}
