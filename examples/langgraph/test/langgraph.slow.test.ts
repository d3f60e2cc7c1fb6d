import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...options: string[]): Promise<{ readonly stdout: string; readonly signal?: string }> {
  const main = join(import.meta.dirname, "../src/main.ts");
  const args = ["--conditions=@throughline/source", main, "Charge my card.", join(folder, "s.db"), ...options];
  return promisify(execFile)(process.execPath, args).catch(
    (error: unknown) => error as { stdout: string; signal?: string },
  );
}

describe("the example with LangGraph", () => {
  it("charges the card once, although the process died behind the charge", async () => {
    const died = await run("--die");
    expect([died.signal, died.stdout]).toEqual(["SIGKILL", "The card is charged.\n"]);
    const conversation = [
      "human: Charge my card.",
      "ai: ",
      "tool: charged 5 EUR",
      "ai: I charged 5 EUR. Receipt: yes.",
    ];
    expect((await run()).stdout).toBe(`${conversation.join("\n")}\n`);
  });
});
