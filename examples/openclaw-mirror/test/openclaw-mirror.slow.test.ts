import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const stateDir = mkdtempSync(join(tmpdir(), "throughline-example-"));
afterAll(() => rmSync(stateDir, { recursive: true, force: true }));

const key = "agent:main:main";
const sessionId = "7c2d1f0a-1111-4222-8333-444455556666";
const sessions = join(stateDir, "agents/main/sessions");
const transcript = join(sessions, `${sessionId}.jsonl`);

/** A state folder as OpenClaw writes it: an index with fields of its own, and a transcript of version 3. */
function writeState(): string {
  mkdirSync(sessions, { recursive: true });
  const entry = { sessionId, updatedAt: 1_767_225_601_000, label: "Home", skillsSnapshot: { prompt: "p", skills: [] } };
  writeFileSync(join(sessions, "sessions.json"), `${JSON.stringify({ [key]: entry }, null, 2)}\n`);
  const message = { role: "user", content: "Start the build.", timestamp: 1_767_225_601_000 };
  const lines = [
    { type: "session", version: 3, id: sessionId, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/srv" },
    { type: "message", id: "a1b2c3d4", parentId: null, timestamp: "2026-01-01T00:00:01.000Z", message },
  ];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  writeFileSync(transcript, text);
  return text;
}

async function run(): Promise<string> {
  const main = join(import.meta.dirname, "../src/main.ts");
  const env = { ...process.env, THROUGHLINE_HOME: stateDir };
  return (await promisify(execFile)(process.execPath, [main, key, "Your build is done."], { env })).stdout;
}

describe("the example that mirrors a message", () => {
  it("adds the message to OpenClaw's files once and reads it from the store of the folder", async () => {
    const before = writeState();
    expect((await run()).split("\n")).toEqual([
      `${key}  ${sessionId}  Home`,
      `added: ${transcript}`,
      "",
      'user: "Start the build."',
      expect.stringMatching(/^assistant: .*Your build is done\./),
      "",
    ]);
    const after = readFileSync(transcript, "utf8");
    expect(after.startsWith(before)).toBe(true);
    expect(JSON.parse(after.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      type: "message",
      parentId: "a1b2c3d4",
      message: { role: "assistant" },
    });
    const index = JSON.parse(readFileSync(join(sessions, "sessions.json"), "utf8")) as object;
    expect(index).toMatchObject({
      [key]: { sessionId, label: "Home", lastChannel: "discord", lastTo: "user:7", skillsSnapshot: { prompt: "p" } },
    });
    expect(await run()).toContain("already there");
    expect(readFileSync(transcript, "utf8")).toBe(after);
  });
});
