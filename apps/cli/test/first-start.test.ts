import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory, type Run } from "./harness.ts";
import { rowOf } from "./screens.ts";
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

const codexId = "019e03b2-11a2-7320-9098-5d831813e66c";
const opencodeId = "ses_469cf929cffeBICghRNeI7BWy6";

/** One session each as Codex, Gemini CLI and an opencode without a database keep it. */
function furtherTranscripts(): void {
  const timestamp = "2026-01-01T00:00:01.000Z";
  const said = { type: "message", role: "user", content: [{ type: "input_text", text: "Name the gulls." }] };
  const opencode = ".local/share/opencode/storage";
  const files: Readonly<Record<string, readonly object[]>> = {
    [`.codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-${codexId}.jsonl`]: [
      { timestamp, type: "session_meta", payload: { id: codexId, cwd: "/home/ada" } },
      { timestamp, type: "response_item", payload: said },
    ],
    ".gemini/tmp/app/chats/session-2026-01-01T00-00-g1.jsonl": [
      { sessionId: "g1", projectHash: "743e", startTime: timestamp, lastUpdated: timestamp, kind: "main" },
      { id: "m1", timestamp, type: "user", content: "Tar the rope." },
    ],
    [`${opencode}/session/global/${opencodeId}.json`]: [{ id: opencodeId, projectID: "global", title: "Nets" }],
    [`${opencode}/message/${opencodeId}/msg_1.json`]: [{ id: "msg_1", role: "user", time: { created: 1 } }],
    [`${opencode}/part/msg_1/prt_1.json`]: [{ id: "prt_1", type: "text", text: "Mend the nets." }],
    [`${opencode}/session_share/${opencodeId}.json`]: [{ id: "x", secret: "secret" }],
  };
  writeLines(files);
}

/** One session each as Copilot CLI and Qwen Code keep it. */
function lastTranscripts(): void {
  const timestamp = "2026-01-01T00:00:01.000Z";
  const copilot = (id: string, type: string, data: object): object => ({ type, data, id, parentId: null, timestamp });
  const qwen = { uuid: "q1", parentUuid: null, sessionId: claudeId, timestamp, type: "user", cwd: "/home/ada" };
  writeLines({
    ".copilot/session-state/c1/events.jsonl": [
      copilot("e0", "session.start", { sessionId: "c1", context: { cwd: "/home/ada" }, startTime: timestamp }),
      copilot("e1", "user.message", { content: "Ring the bell." }),
    ],
    [`.qwen/projects/-home-ada/chats/${claudeId}.jsonl`]: [
      { ...qwen, message: { role: "user", parts: [{ text: "Ring twice for the ferry." }] } },
    ],
  });
}

function writeLines(files: Readonly<Record<string, readonly object[]>>): void {
  for (const [name, lines] of Object.entries(files)) {
    const file = join(directory.path, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
}

/** A folder without a session of its own shows those of other programs first. */
async function leavePicker(terminal: Terminal): Promise<void> {
  await terminal.waitFor("6 sessions: ");
  terminal.write("\u001b");
  await terminal.waitForPrompt();
}

describe("sessions of several programs at the first run", () => {
  it("are counted in one question, imported after a yes, and asked about once", { tags: ["slow"] }, async () => {
    transcripts();
    furtherTranscripts();
    openclawSession();
    {
      await using terminal = chat();
      await terminal.waitFor("> ");
      // It is for the conversation, and neither an answer nor a filter.
      terminal.write("early words");
      await terminal.waitFor("[y/N] ");
      const asked = terminal.text();
      for (const program of ["Claude Code", "Codex", "Gemini CLI", "opencode", "pi", "OpenClaw"])
        expect(asked).toContain(`${program} 1 session`);
      expect(asked.match(/Import them\?/g)).toHaveLength(1);
      terminal.write("y\r");
      await terminal.waitFor("Imported 6 sessions");
      await leavePicker(terminal);
      await rowOf(terminal, /^> early words$/, 300);
      terminal.write("\u0015/quit\r");
      expect(await terminal.exitCode()).toBe(0);
    }
    const imported = [claudeId, codexId, "g1", "s2", opencodeId].map((id) => `agent:main:import:direct:${id}`);
    expect((await sessionKeys()).toSorted()).toEqual([...imported, key].toSorted());
    for (const words of ["buoys", "pier", "lamps", "gulls", "rope", "nets"])
      expect((await run(["search", words])).stdout).toContain(words);
    await using again = chat();
    await leavePicker(again);
    expect(again.text()).not.toContain("Import them?");
    again.write("/quit\r");
    expect(await again.exitCode()).toBe(0);
  });

  it("end with Ctrl-C at the question, which leaves the terminal as it was", { tags: ["slow"] }, async () => {
    transcripts();
    await using terminal = chat();
    await terminal.waitFor("[y/N] ");
    const before = terminal.raw().length;
    terminal.write("\u0003");
    expect(await terminal.exitCode()).toBe(130);
    // Neither the prompt nor the marks of a paste come back.
    expect(terminal.raw().slice(before)).not.toContain("\u001b[?2004h");
  });

  it.each([
    ["search", ["search", "ring"], ["Ring the bell", "Ring twice for the ferry"]],
    ["sessions", ["sessions"], ["Count the buoys", "Paint the pier", "Nets"]],
  ])("are offered by a first `%s`, which then has them", { tags: ["slow"] }, async (_name, args, found) => {
    transcripts();
    furtherTranscripts();
    openclawSession();
    lastTranscripts();
    const look = (): Terminal =>
      runInTerminal(directory.path, args, {
        environment: { ...noKeys, HOME: directory.path, THROUGHLINE_HOME: home },
        columns: 300,
      });
    {
      await using terminal = look();
      await terminal.waitFor("[y/N] ");
      expect(existsSync(home)).toBe(false);
      terminal.write("y\r");
      expect(await terminal.exitCode()).toBe(0);
      expect(terminal.text()).toContain("Imported 8 sessions");
      for (const words of found) expect(terminal.text()).toContain(words);
    }
    await using again = look();
    expect(await again.exitCode()).toBe(0);
    expect(again.text()).not.toContain("Import them?");
  });

  it("stay where they are after a no to a first search, and no store is made", { tags: ["slow"] }, async () => {
    transcripts();
    const environment = { ...noKeys, HOME: directory.path, THROUGHLINE_HOME: home };
    await using terminal = runInTerminal(directory.path, ["search", "buoys"], { environment, columns: 300 });
    await terminal.waitFor("[y/N] ");
    terminal.write("n\r");
    expect(await terminal.exitCode()).toBe(0);
    expect(terminal.text()).toContain("Nothing was imported");
    expect(readdirSync(home)).toEqual(["sync.json"]);
  });

  it("are left alone where nobody can answer, or a setting says so", async () => {
    const files = transcripts();
    const before = files.map((file) => readFileSync(file, "utf8"));
    const once = await run(["chat", "--model", "offline", "--once", "Hi"]);
    expect([once.code, once.stderr.includes("sessions of")]).toEqual([0, false]);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "config.json"), JSON.stringify({ session: { inherit: { enabled: false } } }));
    await using terminal = chat();
    await terminal.waitForPrompt();
    expect(terminal.text()).not.toContain("Import them?");
    terminal.write("/quit\r");
    expect(await terminal.exitCode()).toBe(0);
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(before);
  });
});
