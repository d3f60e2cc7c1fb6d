const quarterMs = 15 * 60 * 1000;

/** Names the day, the week or the month of a quarter of an hour in the local time zone. A week begins on Monday. */
export function timeLabel(unit: "day" | "week" | "month", quarter: number): string {
  const date = new Date(startOf(quarter));
  if (unit === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  const month = `${date.getFullYear()}-${padded(date.getMonth() + 1)}`;
  return unit === "month" ? month : `${month}-${padded(date.getDate())}`;
}

function padded(part: number): string {
  return String(part).padStart(2, "0");
}

/** Returns the start of a quarter of an hour, in milliseconds since 1970. */
export function startOf(quarter: number): number {
  return quarter * quarterMs;
}

/** Returns the quarter of an hour of a time in milliseconds since 1970. */
export function quarterOf(atMs: number): number {
  return Math.floor(atMs / quarterMs);
}
