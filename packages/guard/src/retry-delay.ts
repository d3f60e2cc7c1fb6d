import { ownKeys, readProperty } from "./read-property.ts";

/** Reads the wait that an error's headers or fields ask for, in milliseconds; null when they ask for none. */
export function retryDelayMs(value: object): number | null {
  const headers = [readProperty(value, "headers"), readProperty(value, "responseHeaders"), value];
  for (const from of headers) {
    const after = header(from, "retry-after");
    const found =
      milliseconds(header(from, "retry-after-ms"), 1) ??
      milliseconds(after, 1000) ??
      untilDate(after, header(from, "date"));
    if (found !== null) return found;
  }
  const stated = readProperty(value, "retryAfterMs");
  // Google's RetryInfo has the form "34s", which is read like a text.
  return milliseconds(stated, 1) ?? delayInText(`in ${String(textOf(readProperty(value, "retryDelay")))}`);
}

const hours = "(\\d{1,9})\\s?h(?:(?:ou)?rs?)?";
const minutes = "(\\d{1,9})\\s?m(?:in(?:ute)?s?)?";
const seconds = "(\\d{1,9}(?:\\.\\d{1,9})?)\\s?(ms|milliseconds?|s|sec(?:ond)?s?)";
const delay = new RegExp(
  `\\b(?:in|after)\\s{1,8}(?=\\d)(?:${hours}\\s?)?(?:${minutes}(?![a-z])\\s?)?(?:${seconds})?(?![a-z\\d])`,
  "i",
);

/**
 * Reads "try again in 3.5s", "retry after 20 seconds", "in 1h2m3s", "in 2 minutes". Null when the text names no time.
 */
export function delayInText(text: string): number | null {
  const match = delay.exec(text);
  const [, hour, minute, second, unit = ""] = match ?? [];
  if (hour === undefined && minute === undefined && second === undefined) return null;
  const rest = Number(second ?? 0) * (/^m/i.test(unit) ? 1 : 1000);
  return Math.round(Number(hour ?? 0) * 3_600_000 + Number(minute ?? 0) * 60_000 + rest);
}

/**
 * Computes the wait by the server's own clock, because the local clock may differ. Null when the answer has no `date`
 * header.
 */
function untilDate(after: unknown, date: unknown): number | null {
  if (typeof after !== "string" || typeof date !== "string") return null;
  const waitMs = Date.parse(after) - Date.parse(date);
  return Number.isNaN(waitMs) ? null : Math.max(0, waitMs);
}

function header(headers: unknown, name: string): unknown {
  const get = readProperty(headers, "get");
  if (typeof get !== "function") {
    const written = typeof headers === "object" && headers !== null ? ownKeys(headers) : [];
    return readProperty(headers, written.find((key) => key.toLowerCase() === name) ?? name);
  }
  try {
    return get.call(headers, name) as unknown;
  } catch {
    // The object has an unrelated method with the name `get`.
    return undefined;
  }
}

function milliseconds(value: unknown, unit: number): number | null {
  const amount = typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value;
  return typeof amount === "number" && Number.isFinite(amount) && amount >= 0 ? Math.round(amount * unit) : null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
