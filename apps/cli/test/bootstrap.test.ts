import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cleanEnvironment, objects, temporaryDirectory } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const directory = temporaryDirectory();
const root = join(import.meta.dirname, "../../..");
const script = join(root, "tools/bootstrap.mjs");
const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "", NODE_OPTIONS: "" };
afterAll(() => directory.remove());

interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the script of this checkout, as npm does. */
function run(
  home: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Printed> {
  const env = cleanEnvironment(home, { ...noKeys, ...variables });
  const running = promisify(execFile)(process.execPath, [script, ...args], { cwd: root, env });
  running.child.stdin?.end();
  return running;
}

function emptyHome(name: string): string {
  const home = join(directory.path, name);
  mkdirSync(home);
  return home;
}

// A checkout whose packages were installed by hand has no marker yet: the first call checks them and writes it.
beforeAll(() => run(emptyHome("first"), ["throughline", "--version"]), 300_000);

describe("npm run -s throughline", () => {
  it("prints nothing but what the command prints", async () => {
    expect(await run(emptyHome("silent"), ["throughline", "--version"])).toEqual({ stdout: "0.1.0\n", stderr: "" });
  });
});

describe("npm start", () => {
  it("opens a conversation on a terminal", { tags: ["slow"] }, async () => {
    await using terminal = runInTerminal(emptyHome("terminal"), ["start"], { environment: noKeys, script });
    await terminal.waitFor("\n> ");
    terminal.write("/quit\r");
    await terminal.waitFor("What to do next:");
    expect(await terminal.exitCode()).toBe(0);
  });

  it("stores one turn without a terminal, and runs any command that is given", { tags: ["slow"] }, async () => {
    const home = emptyHome("piped");
    const { stdout, stderr } = await run(home, ["start"]);
    expect(stdout).toContain("[offline rules, not a language model] Hello");
    expect(stderr).toContain("npm run -s throughline -- sessions");
    const sessions = await run(home, ["start", "sessions", "--json"]);
    expect(objects(sessions.stdout)).toEqual([
      expect.objectContaining({ kind: "session", messageCount: 2 }),
      expect.objectContaining({ kind: "end" }),
    ]);
  });
});

describe("npm run build", () => {
  it("hands turbo the pinned pnpm, on a path that has none", async () => {
    const folder = emptyHome("path");
    symlinkSync(process.execPath, join(folder, "node"));
    // Stands for the registry's program: prints how it was called.
    const program = `#!${process.execPath}\nconsole.log("npx " + process.argv.slice(2).join(" "));`;
    writeFileSync(join(folder, "npx"), program, { mode: 0o755 });
    const { stdout } = await run(folder, ["build", "--dry"], { PATH: folder });
    expect(stdout.trim()).toMatch(/^npx -y pnpm@\d+\.\d+\.\d+ exec turbo run build --dry$/);
  });
});
