import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory, type Run } from "./harness.ts";
import { runInTerminal, type Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
let home = "";
beforeEach(() => {
  directory = temporaryDirectory();
  home = join(directory.path, ".throughline");
});
afterEach(() => directory.remove());

const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };
const key = "agent:main:main";

function run(args: readonly string[]): Promise<Run> {
  return runHere(directory.path, args, { environment: { ...noKeys, THROUGHLINE_HOME: home } });
}

function chat(): Terminal {
  const environment = { ...noKeys, HOME: directory.path, THROUGHLINE_HOME: home };
  return runInTerminal(directory.path, ["chat", "--model", "offline"], { environment, columns: 300 });
}

async function sessionKeys(): Promise<readonly unknown[]> {
  const { stdout } = await run(["sessions", "--json", "--quiet"]);
  return objects(stdout).flatMap((session) => (session["kind"] === "session" ? [session["key"]] : []));
}

/** A session in pi's form, which is OpenClaw's too. */
function piLines(id: string, text: string): string {
  const header = { type: "session", version: 3, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/home/ada" };
  const message = { type: "message", id: `${id}-1`, parentId: null, timestamp: "2026-01-01T00:00:01.000Z" };
  const said = { ...message, message: { role: "user", content: text } };
  return `${JSON.stringify(header)}\n${JSON.stringify(said)}\n`;
}

function openclawSession(): void {
  const folder = join(directory.path, ".openclaw/agents/main/sessions");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "s1.jsonl"), piLines("s1", "Where are the lamps?"));
  writeFileSync(
    join(folder, "sessions.json"),
    JSON.stringify({ [key]: { sessionId: "s1", updatedAt: 1_767_225_601_000 } }),
  );
}

const claudeId = "5e551011-0000-4000-8000-000000000001";

/** One session each as Claude Code and pi keep it, and files beside them that nobody may open. */
function transcripts(): readonly string[] {
  const claude = join(directory.path, ".claude/projects/-home-ada");
  const pi = join(directory.path, ".pi/agent/sessions/--home-ada--");
  const [claudeFile, piFile] = [join(claude, `${claudeId}.jsonl`), join(pi, "2026-01-01T00-00-00-000Z_s2.jsonl")];
  for (const folder of [claude, pi]) mkdirSync(folder, { recursive: true });
  const line = {
    type: "user",
    uuid: "u1",
    parentUuid: null,
    sessionId: claudeId,
    timestamp: "2026-01-01T00:00:01.000Z",
  };
  writeFileSync(claudeFile, `${JSON.stringify({ ...line, message: { role: "user", content: "Count the buoys." } })}\n`);
  writeFileSync(piFile, piLines("s2", "Paint the pier."));
  writeFileSync(join(directory.path, ".claude/.credentials.json"), '{"token":"secret"}');
  return [claudeFile, piFile];
}

describe("sessions of several programs at the first run", () => {
  it("are counted in one question, imported after a yes, and asked about once", async () => {
    transcripts();
    openclawSession();
    {
      await using terminal = chat();
      await terminal.waitFor("[y/N] ");
      const asked = terminal.text();
      expect(asked).toContain("There are sessions of other programs: OpenClaw: 1 transcript");
      expect(asked).toContain("Claude Code: 1 transcript");
      expect(asked).toContain("pi: 1 transcript");
      expect(asked.match(/Import them\?/g)).toHaveLength(1);
      terminal.write("y\r");
      await terminal.waitFor("Imported 3 sessions");
      await terminal.waitFor("> ");
      terminal.write("/quit\r");
      expect(await terminal.exitCode()).toBe(0);
    }
    expect((await sessionKeys()).toSorted()).toEqual([
      `agent:main:import:direct:${claudeId}`,
      "agent:main:import:direct:s2",
      key,
    ]);
    for (const words of ["buoys", "pier", "lamps"]) expect((await run(["search", words])).stdout).toContain(words);
    await using again = chat();
    await again.waitFor("> ");
    expect(again.text()).not.toContain("sessions of");
    again.write("/quit\r");
    expect(await again.exitCode()).toBe(0);
  });

  it("are left alone where nobody can answer, or a setting says so", async () => {
    const files = transcripts();
    const before = files.map((file) => readFileSync(file, "utf8"));
    const once = await run(["chat", "--model", "offline", "--once", "Hi"]);
    expect([once.code, once.stderr.includes("sessions of")]).toEqual([0, false]);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "config.json"), JSON.stringify({ session: { inherit: { enabled: false } } }));
    await using terminal = chat();
    await terminal.waitFor("> ");
    expect(terminal.text()).not.toContain("sessions of");
    terminal.write("/quit\r");
    expect(await terminal.exitCode()).toBe(0);
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(before);
  });
});
