import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
const sessions = join(folder, "sessions");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The SDK is real; the program that it starts is a process that speaks its protocol. */
async function run(prompt: string): Promise<string> {
  const adapter = join(import.meta.dirname, "../../../packages/adapter-claude-agent-sdk");
  const env = {
    ...process.env,
    CLAUDE_CODE_PATH: join(adapter, "test/claude-code-process.ts"),
    CLAUDE_CODE_SESSIONS: sessions,
  };
  const args = [join(import.meta.dirname, "../src/main.ts"), prompt, join(folder, "sessions.db")];
  return (await promisify(execFile)(process.execPath, args, { env })).stdout;
}

async function mirrored(machine: string, prompt: string, ...resume: readonly string[]): Promise<string> {
  const adapter = join(import.meta.dirname, "../../../packages/adapter-claude-agent-sdk");
  const env = {
    ...process.env,
    CLAUDE_CODE_PATH: join(adapter, "test/mirrored-process.ts"),
    CLAUDE_CONFIG_DIR: join(folder, machine),
  };
  const args = [join(import.meta.dirname, "../src/mirror.ts"), prompt, join(folder, "mirror.db"), ...resume];
  return (await promisify(execFile)(process.execPath, args, { env })).stdout;
}

describe("the example with the Claude Agent SDK", () => {
  it("resumes over restarts, and from the store when the SDK has lost its session", async () => {
    mkdirSync(sessions);
    expect(await run("My name is Ann.")).toBe("You said 1 things.\nSDK session sdk-1\n");
    expect(await run("And I live in Kiel.")).toBe("You said 2 things.\nSDK session sdk-1-2\n");
    rmSync(sessions, { recursive: true });
    mkdirSync(sessions);
    expect(await run("Where do I live?")).toBe("You said 1 things.\nSDK session sdk-1, rebuilt from the store\n");
    expect(readFileSync(join(sessions, "sdk-1.json"), "utf8")).toContain("And I live in Kiel.");
  });

  it("resumes a mirrored transcript on another machine", async () => {
    const id = "5e551011-0000-4000-8000-000000000001";
    expect(await mirrored("one", "My name is Ann.")).toBe(`began, 0 lines, 0 agents\nresume ${id}\n`);
    expect(await mirrored("two", "What is my name?", id)).toBe(`resumed, 2 lines, 1 agents\nresume ${id}\n`);
  });
});
