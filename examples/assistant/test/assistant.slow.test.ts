import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createProviderSimulator, type ProviderSimulator, type SimulatedReply } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const program = join(import.meta.dirname, "../src/main.ts");
const long = "Harbors are where ships are safe from the sea, and where people wait for them.";

let folder = "";
let provider: ProviderSimulator;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
});
afterEach(async () => {
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

async function simulate(replies: readonly SimulatedReply[]): Promise<void> {
  provider = createProviderSimulator({ replies });
  await provider.start();
}

/** Runs the program; `end` ends it when the answer has begun. */
async function run(
  question: string,
  end?: NodeJS.Signals,
): Promise<{ readonly stdout: string; readonly code: unknown }> {
  const child = spawn(process.execPath, [program, question, join(folder, "sessions.db")], {
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
    if (end !== undefined && !child.killed && stdout.includes("Harbors")) child.kill(end);
  });
  const [code] = (await exited) as [unknown];
  return { stdout, code };
}

describe("the assistant", () => {
  it("answers after all what a killed process was asked", async () => {
    await simulate([{ kind: "answer", content: long, eventDelayMs: 200 }, long, "About harbors."]);
    expect((await run("Tell me about harbors.", "SIGKILL")).code).toBe(null);
    const { stdout, code } = await run("What did I ask?");
    expect([stdout, code]).toEqual([`[resuming: Tell me about harbors.]\n${long}\nAbout harbors.\n`, 0]);
    expect(provider.refusals).toEqual([]);
    const sent = provider.requests.at(-1)?.body as
      | { readonly messages: readonly { readonly role: string }[] }
      | undefined;
    expect(sent?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  });

  it("ends a turn at Ctrl+C, and goes on with the next question", async () => {
    await simulate([{ kind: "answer", content: long, eventDelayMs: 200 }, "About harbors."]);
    const interrupted = await run("Tell me about harbors.", "SIGINT");
    expect(interrupted.code).toBe(0);
    expect(interrupted.stdout).toMatch(/^Harbors[^\n]*\n\[aborted\]\n$/);
    expect((await run("What did I ask?")).stdout).toBe("About harbors.\n");
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("Tell me about harbors.");
  });
});
