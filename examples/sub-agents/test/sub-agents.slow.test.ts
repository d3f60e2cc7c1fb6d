import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createProviderSimulator } from "@throughline/testing";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the example with sub-agents", () => {
  it("runs a sub-agent's turn in a session of its own and gives its answer to the model", async () => {
    const input = { task: "Name a sea.", label: "seas" };
    const spawn = { type: "tool-call", name: "sessions_spawn", input } as const;
    await using provider = createProviderSimulator({
      replies: [{ kind: "answer", content: [spawn] }, "The Baltic.", "The sub-agent named the Baltic."],
    });
    await provider.start();
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(import.meta.dirname, "../src/main.ts"), "Ask for a sea.", join(folder, "sessions.db")],
      { env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url } },
    );
    expect(provider.refusals).toEqual([]);
    expect(stdout).toMatch(
      /^The sub-agent named the Baltic\.\n\nagent:main:subagent:\S+ {2}2 messages {2}started by agent:main:main\n$/,
    );
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("The Baltic.");
  });
});
