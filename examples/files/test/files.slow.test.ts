import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { createProviderSimulator } from "@throughline/testing";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const program = new URL("../src/main.ts", import.meta.url).pathname;
const run = promisify(execFile);
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-files-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the example of files", () => {
  it("sends a PDF with two questions and stores it once", async () => {
    const simulator = createProviderSimulator({ fallback: () => "It costs 12 euros." });
    await simulator.start();
    const pdf = Buffer.from("%PDF-1.7\nprice: 12");
    writeFileSync(join(folder, "report.pdf"), pdf);
    const env = { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: simulator.url };
    for (const question of ["What does it cost?", "Are you sure?"]) {
      const args = ["--conditions=@throughline/source", program, "report.pdf", question];
      const { stdout } = await run(process.execPath, args, { cwd: folder, env });
      expect(stdout).toBe("It costs 12 euros.\n");
    }
    for (const { body } of simulator.requests) expect(JSON.stringify(body)).toContain(pdf.toString("base64"));
    await simulator.close();
    await using store = createSqliteStore({ path: join(folder, "sessions.db") });
    const files = (await Array.fromAsync(store.files!.list({ namespace: "", agentId: "main" }))).flat();
    expect(files.map(({ bytes, references }) => [bytes, references])).toEqual([[pdf.length, 2]]);
  });

  it("says how it is called", () => {
    expect(() =>
      execFileSync(process.execPath, ["--conditions=@throughline/source", program], { stdio: "pipe" }),
    ).toThrow(/node src\/main.ts FILE/);
  });
});
