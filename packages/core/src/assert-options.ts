import { refused } from "./refused.ts";

/** What plain JavaScript may hand over, by the option's name; undefined is always "not given". */
type Given = Readonly<Record<string, unknown>>;

/** Any other text would mean one thing to one store and another to the next. @throws {ThroughlineError} INPUT_INVALID */
export function assertOneOf(options: Given, values: readonly string[]): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || values.includes(value as string)) continue;
    const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
    throw refused("INPUT_INVALID", `${name} is ${values.join(", ")}, not ${shown}.`, { option: name, value, values });
  }
}

/** Infinity is a number, and nothing lies beyond it. @throws {ThroughlineError} INPUT_INVALID */
export function assertNumbers(options: Given): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || (typeof value === "number" && !Number.isNaN(value))) continue;
    throw refused("INPUT_INVALID", `${name} is a number, not ${String(value)}.`, { option: name, value });
  }
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function assertTexts(options: Given): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || typeof value === "string") continue;
    throw refused("INPUT_INVALID", `${name} is a text, not ${String(value)}.`, { option: name, value });
  }
}
