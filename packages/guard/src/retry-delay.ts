import { readProperty } from "./read-property.ts";

/** The wait that an error's headers or fields ask for, in milliseconds; null when they ask for none. */
export function retryDelayMs(value: object): number | null {
  const headers = [readProperty(value, "headers"), readProperty(value, "responseHeaders"), value];
  for (const from of headers) {
    const found = milliseconds(header(from, "retry-after-ms"), 1) ?? milliseconds(header(from, "retry-after"), 1000);
    if (found !== null) return found;
  }
  const stated = readProperty(value, "retryAfterMs");
  // Google's RetryInfo says "34s".
  return milliseconds(stated, 1) ?? delayInText(`in ${String(textOf(readProperty(value, "retryDelay")))}`);
}

/** "try again in 3.5s", "retry after 20 seconds", "in 1m30s"; null when the text names no time. */
export function delayInText(text: string): number | null {
  const match =
    /\b(?:in|after)\s+(?:(\d+)\s*m(?:in(?:ute)?s?)?\s*)?(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec(?:ond)?s?)\b/i.exec(
      text,
    );
  if (match === null) return null;
  const unit = /^m/i.test(match[3] ?? "") ? 1 : 1000;
  return Math.round(Number(match[1] ?? 0) * 60_000 + Number(match[2]) * unit);
}

function header(headers: unknown, name: string): unknown {
  const get = readProperty(headers, "get");
  if (typeof get !== "function") return readProperty(headers, name);
  try {
    return get.call(headers, name) as unknown;
  } catch {
    // Something else with a method of that name.
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
