import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...options: string[]): Promise<string> {
  const main = join(import.meta.dirname, "../src/main.ts");
  const args = ["--conditions=@throughline/source", main, "Charge my card.", join(folder, "s.db"), ...options];
  return promisify(execFile)(process.execPath, args).then(
    ({ stdout }) => stdout,
    (error: unknown) =>
      String((error as { signal?: string; stderr?: string }).signal ?? (error as { stderr?: string }).stderr),
  );
}

describe("the example with OpenAI Agents", () => {
  it("knows after a crash that the card was charged", async () => {
    expect(await run("--die")).toBe("SIGKILL");
    await expect.poll(() => run(), { interval: 500 }).toBe("Your card was charged already.\n5 items are stored.\n");
  });
});
