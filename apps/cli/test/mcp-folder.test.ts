import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());
const app = join(directory.path, "app");
const other = join(directory.path, "other");

beforeAll(async () => {
  mkdirSync(join(app, "memory"), { recursive: true });
  mkdirSync(join(other, "memory"), { recursive: true });
  symlinkSync(app, join(directory.path, "link"));
  writeFileSync(join(app, "memory/notes.md"), "the harbour of our files\n");
  writeFileSync(join(other, "memory/notes.md"), "the harbour of the files of a customer\n");
  await seed(directory.path, [
    { key: "agent:main:ours", entry: { cwd: app }, drafts: [user("our harbour")] },
    { key: "agent:main:theirs", entry: { cwd: other }, drafts: [user("the harbour of a customer")] },
    { key: "agent:main:none", drafts: [user("the harbour of a customer without a folder")] },
  ]);
});

async function answers(args: readonly string[], cwd = app): Promise<string> {
  const calls = [
    ["search_sessions", { query: "harbour" }],
    ["search_sessions", { query: "harbour", key: "agent:main:theirs" }],
    ["read_session", { key: "agent:main:theirs" }],
    ["read_session", { key: "agent:main:none" }],
    ["list_sessions", {}],
    ["read_memory", { query: "harbour" }],
  ] as const;
  const requests = calls.map(([name, given]) => ({ method: "tools/call", params: { name, arguments: given } }));
  const stdin = [{ method: "resources/list" }, ...requests]
    .map((request, id) => `${JSON.stringify({ jsonrpc: "2.0", id, ...request })}\n`)
    .join("");
  const { code, stdout, stderr } = await runHere(directory.path, ["mcp", ...args], { stdin, cwd });
  expect([code, stderr]).toEqual([0, ""]);
  expect(objects(stdout)).toHaveLength(calls.length + 1);
  return stdout;
}

describe("mcp limited to a folder", () => {
  it.each([
    [["--here"], app],
    [["--folder", "."], app],
    [["--folder", app], directory.path],
    [["--folder", "link"], directory.path],
    [["--here"], join(directory.path, "link")],
  ])("with %j shows the sessions of that folder only", async (args, cwd) => {
    const shown = await answers(args, cwd);
    expect(shown).toContain("our harbour");
    expect(shown).not.toMatch(/customer|theirs|agent:main:none/);
  });

  it("by a setting, which an option overrides", async () => {
    const config = join(directory.path, "folder.json");
    writeFileSync(config, JSON.stringify({ mcp: { folder: "." } }));
    const shown = await answers(["--config", config], app);
    expect(shown).toContain("our harbour");
    expect(shown).not.toMatch(/customer|theirs/);
    expect(await answers(["--config", config, "--folder", directory.path])).toContain("theirs");
    writeFileSync(config, JSON.stringify({ mcp: { folder: other } }));
    expect(await answers(["--config", config, "--here"])).not.toContain("customer");
  });

  it("searches memory files below the folder only", async () => {
    expect(await answers(["--here", "--workspace", "."])).toContain("of our files");
    expect(await answers(["--here", "--workspace", other])).not.toContain("customer");
    expect(await answers(["--workspace", other])).toContain("files of a customer");
  });

  it("is refused where the folder cannot be resolved, and with two folders", async () => {
    symlinkSync(join(directory.path, "loop"), join(directory.path, "loop"));
    for (const args of [
      ["--folder", "loop"],
      ["--here", "--folder", "app"],
    ]) {
      const { code, stdout } = await runHere(directory.path, ["mcp", ...args]);
      expect([code, stdout]).toEqual([2, ""]);
    }
  });
});
