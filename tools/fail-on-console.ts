import { afterEach, beforeEach } from "vitest";

// A test that prints hides what it prints: in a run of hundreds nobody reads it, and a warning from our own code is a
// result somebody should have asserted. So any console output fails the test that caused it.
const methods = ["log", "info", "warn", "error", "debug", "trace", "dir", "table"] as const;
const originals = new Map(methods.map((method) => [method, console[method]]));
let printed: string[] = [];

function install(): void {
  printed = [];
  for (const method of methods) {
    console[method] = (...values: unknown[]): void => {
      printed.push(`console.${method}(${values.map(String).join(", ")})`);
    };
  }
}

function restore(): void {
  for (const [method, original] of originals) console[method] = original;
}

beforeEach(install);

afterEach(() => {
  restore();
  if (printed.length > 0) throw new Error(`the test wrote to the console:\n${printed.join("\n")}`);
});
