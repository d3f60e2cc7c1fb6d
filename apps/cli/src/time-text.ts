/** How long ago, in one unit: `12 s`, `5 min`, `3 h`, `6 d`; older than 60 days: the date. */
export function ageText(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 60 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return new Date(atMs).toISOString().slice(0, 10);
}

/** A point in time to the second, UTC; `-` when unknown. */
export function timeText(atMs: number | null): string {
  if (atMs === null || Math.abs(atMs) > 8.64e15) return "-";
  return new Date(atMs).toISOString().replace("T", " ").slice(0, 19);
}
