import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { foreignFixtures } from "./foreign-fixtures.ts";
import { runHere, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** Lays the transcript of a program where it keeps it; gives the path. */
function lay(format: string, id?: string): string {
  const fixture = foreignFixtures.find((one) => one.format === format);
  if (fixture === undefined) throw new Error(`no fixture of ${format}`);
  const own = "5e551011-0000-4000-8000-000000000001";
  const path = join(directory.path, fixture.path.replaceAll(own, id ?? own));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, fixture.stages.at(-1)?.replaceAll(own, id ?? own) ?? "");
  return path;
}

describe("after an import", () => {
  it("a person reads what was found, by program, and three commands that work as printed", async () => {
    lay("claude-code");
    lay("claude-code", "5e551011-0000-4000-8000-000000000002");
    lay("codex");
    const { stderr } = await runHere(directory.path, ["import", ".claude", ".codex"], { isTerminal: true });
    expect(stderr).toContain("Imported 3 sessions: Claude Code 2, Codex 1.\n");
    const commands = [...stderr.matchAll(/^ {2}`throughline ([^`]*)` /gm)].map(([, command]) => command ?? "");
    expect(commands.map((command) => command.split(" ")[0])).toEqual(["sessions", "search", "show"]);
    for (const command of commands) {
      const words = command.replace("WORDS", "hello").match(/'[^']*'|\S+/g) ?? [];
      const run = await runHere(directory.path, [...words.map((word) => word.replaceAll("'", "")), "--json"]);
      expect(run.code).toBe(0);
      expect(run.stdout.split("\n").length).toBeGreaterThan(2);
    }
  });

  it("names the example by its title where only that session has it", async () => {
    lay("claude-code");
    const { stderr } = await runHere(directory.path, ["import", ".claude"], { isTerminal: true });
    expect(stderr).toContain("`throughline show 'A file'` prints one");
  });

  it("a script reads one line, in the form that works with its options", async () => {
    lay("claude-code");
    const first = await runHere(directory.path, ["import", ".claude", "--store", "sqlite:other.db"]);
    expect(first.stderr).toContain("Imported 1 session: Claude Code 1.\n");
    expect(first.stderr).toContain("Try: `throughline search WORDS --store sqlite:other.db`\n");
    const again = await runHere(directory.path, ["import", ".claude", "--store", "sqlite:other.db"]);
    expect(again.stderr).not.toContain("Imported");
    const dry = await runHere(directory.path, ["import", ".claude", "--dry-run"]);
    expect(dry.stderr).not.toContain("Try:");
    const json = await runHere(directory.path, ["import", ".claude", "--json"]);
    expect(json.stderr).not.toContain("Imported");
  });

  it("a session that was continued here names the command that imports its source beside it", async () => {
    const path = lay("claude-code");
    lay("codex");
    await runHere(directory.path, ["import", ".claude"]);
    const [id] = ["5e551011-0000-4000-8000-000000000001"];
    const draft = JSON.stringify({ type: "message", message: { role: "user", content: "and then?" } });
    await runHere(directory.path, ["append", `agent:main:import:direct:${id}`], { stdin: `${draft}\n` });
    appendFileSync(path, `${JSON.stringify({ type: "novelty", of: ["more"] })}\n`);
    const { code, stderr } = await runHere(directory.path, ["import", ".claude", ".codex"]);
    expect(code).toBe(3);
    const command = /`throughline (import [^`]* --key KEY)`/.exec(stderr)?.[1] ?? "";
    expect(command).toContain(path);
    const beside = await runHere(directory.path, command.replace("KEY", "beside").split(" "));
    expect(beside.stderr).toContain("Imported 1 session: Claude Code 1.\n");
  });
});
