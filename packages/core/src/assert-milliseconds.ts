import { refused } from "./refused.ts";

/**
 * Any comparison with what is no number is false: a lock would be waited for without end.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export function assertMilliseconds(options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "number" && value >= 0) continue;
    throw refused("CONFIG_INVALID", `${name} is a number of milliseconds from 0 on, not ${String(value)}.`, {
      option: name,
      value,
    });
  }
}
