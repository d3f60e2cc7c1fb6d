import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const example = join(import.meta.dirname, "..");

let folder = "";
let provider: ProviderSimulator;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
  provider = createProviderSimulator({
    fallback: ({ api }) =>
      api === "ollama"
        ? JSON.stringify({ summary: "They count lamps.", topics: ["lamps"], keyDecisions: [], openQuestions: [] })
        : { kind: "answer", content: "There are four.", usage: { inputTokens: 52_000, outputTokens: 10 } },
  });
  await provider.start();
  const block = readFileSync(join(example, "agent.json"), "utf8");
  writeFileSync(join(folder, "agent.json"), block.replace("http://localhost:11434", provider.url));
});
afterEach(async () => {
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(question: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [join(example, "src/main.ts"), question], {
    cwd: folder,
    env: {
      ...process.env,
      HOME: folder,
      THROUGHLINE_MODEL: "anthropic/claude-opus-5",
      ANTHROPIC_API_KEY: "sk-test",
      ANTHROPIC_BASE_URL: provider.url,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
  await once(child, "close");
  return { stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

describe("the agent from a configuration", () => {
  it("answers, has Ollama write the checkpoint that is due, and continues in the next process", async () => {
    const first = await run("How many lamps are there?");
    expect(first).toEqual({
      stdout: "There are four.\n",
      stderr: expect.stringContaining("[checkpoint.written]") as string,
    });
    expect(existsSync(join(folder, ".openclaw/sessions.db"))).toBe(true);
    await run("And now?");
    const asked = provider.requests.filter(({ api }) => api === "anthropic").at(-1)?.body;
    expect(JSON.stringify(asked)).toContain("How many lamps are there?");
    expect(provider.refusals).toEqual([]);
  });

  it("is a program of at most 20 lines", () => {
    const lines = readFileSync(join(example, "src/main.ts"), "utf8").trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(20);
  });
});
