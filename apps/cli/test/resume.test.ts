import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { foreignFixtures } from "./foreign-fixtures.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

const id = "7f2abd2d-7cfc-4447-9ddd-3ca8d14e02e9";
const draft = JSON.stringify({ type: "message", message: { role: "user", content: "and then?" } });

interface Imported {
  readonly home: string;
  readonly file: string;
  readonly key: string;
}

async function imported(name: string, path: string, text: string): Promise<Imported> {
  const home = join(directory.path, name);
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  const run = await runHere(home, ["import", file, "--json"]);
  const sources = objects(run.stdout)[0]?.["sources"] as readonly { readonly key: string }[] | undefined;
  const key = sources?.[0]?.key ?? "";
  return { home, file, key };
}

/** A session of Claude Code that states the folder and the id. */
function claudeCode(name: string, cwd: string, sessionId = id): Promise<Imported> {
  const message = { role: "user", content: "hello" };
  const line = { type: "user", sessionId, uuid: "u1", parentUuid: null, timestamp: "2026-01-01T00:00:00.000Z" };
  const text = `${JSON.stringify({ ...line, cwd, message })}\n`;
  return imported(name, `.claude/projects/-app/${id}.jsonl`, text);
}

/** Writes a program that notes its folder and its arguments, and ends with 7. */
function installed(home: string, name: string): string {
  const folder = join(home, "bin");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n{ pwd; printf '%s\\n' "$@"; } > "${home}/started"\nexit 7\n`);
  chmodSync(file, 0o755);
  return folder;
}

const commands: Readonly<Record<string, RegExp>> = {
  "claude-code": /^cd \S+ && claude --resume [\w-]+\n$/,
  codex: /^cd \S+ && codex resume [\w-]+\n$/,
  gemini: /^(cd \S+ && )?gemini --resume [\w-]+\n$/,
  "qwen-code": /^(cd \S+ && )?qwen --resume [\w-]+\n$/,
  amp: /^(cd .+ && )?amp threads continue T-[\w-]+\n$/,
  droid: /^(cd \S+ && )?droid --resume [\w-]+\n$/,
  "kimi-cli": /^(cd \S+ && )?kimi --session [\w-]+\n$/,
  opencode: /^(cd \S+ && )?opencode --session \w+\n$/,
  "copilot-cli": /^(cd \S+ && )?copilot --resume=[\w-]+\n$/,
  goose: /^(cd \S+ && )?goose session --resume --session-id [\w-]+\n$/,
};

describe("resume", () => {
  it.each(foreignFixtures.filter(({ format }) => format in commands))(
    "prints the command of $format",
    async ({ format, path, stages }) => {
      const { home, key } = await imported(`of-${format}`, path, stages.at(-1) ?? "");
      const run = await runHere(home, ["resume", key]);
      expect([run.code, run.stdout]).toEqual([0, expect.stringMatching(commands[format] ?? /^$/)]);
    },
  );

  it.each(foreignFixtures.filter(({ format }) => ["cline", "aider", "anthropic"].includes(format)))(
    "says that $format cannot",
    async ({ path, format, stages }) => {
      const { home, key } = await imported(`not-${format}`, path, stages.at(-1) ?? "");
      const run = await runHere(home, ["resume", key]);
      expect([run.code, run.stdout]).toEqual([1, ""]);
      expect(run.stderr).toContain("has no command that resumes a session by its id.");
      expect(run.stderr).toContain(`chat --key ${key}`);
    },
  );

  it("prints the own command for a session that began here, and runs it", { tags: ["slow"] }, async () => {
    const home = join(directory.path, "own");
    mkdirSync(home);
    await runHere(home, ["append", "notes"], { stdin: `${draft}\n` });
    const run = await runHere(home, ["resume", "notes", "--store", `jsonl:${home}/other`]);
    expect(run.code).toBe(1);
    const own = await runHere(home, ["resume", "notes", "--agent", "main"]);
    expect(own.stdout).toBe("throughline chat --key notes --agent main\n");
    const [object] = objects((await runHere(home, ["resume", "notes", "--json"])).stdout);
    expect(object).toMatchObject({ kind: "resume", program: null, path: null, cwd: null });
    const chat = await runHere(home, ["resume", "notes", "--run"], {
      stdin: "hello there",
      environment: { THROUGHLINE_MODEL: "offline" },
    });
    expect(chat.code).toBe(0);
    expect((await runHere(home, ["show", "notes"])).stdout).toContain("hello there");
  });

  it("runs the program in the folder, with the words as they are, and ends with its code", async () => {
    const cwd = join(directory.path, "a folder; touch $(touch hit) 'x'");
    mkdirSync(cwd);
    const { home, key } = await claudeCode("run", cwd);
    const PATH = `.:${installed(home, "claude")}:${process.env["PATH"] ?? ""}`;
    writeFileSync(join(cwd, "claude"), "#!/bin/sh\ntouch hit\n", { mode: 0o755 });
    const run = await runHere(home, ["resume", key, "--run"], { environment: { PATH } });
    expect([run.code, run.stdout, run.stderr]).toEqual([7, "", ""]);
    expect(readFileSync(join(home, "started"), "utf8")).toBe(`${cwd}\n--resume\n${id}\n`);
    const printed = await runHere(home, ["resume", key]);
    const quoted = `'${cwd.replaceAll("'", "'\\''")}'`;
    expect(printed.stdout).toBe(`cd ${quoted} && claude --resume ${id}\n`);
    const none = await runHere(home, ["resume", key, "--run"], { environment: { PATH: "." } });
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("The program claude is not on the path.")]);
    expect((await runHere(home, ["resume", key, "--run", "--json"])).code).toBe(2);
  });

  it("reports a folder that does not exist, and runs nothing there", async () => {
    const { home, key } = await claudeCode("gone", join(directory.path, "nowhere"));
    const printed = await runHere(home, ["resume", key]);
    expect([printed.code, printed.stdout]).toEqual([0, `cd ${directory.path}/nowhere && claude --resume ${id}\n`]);
    expect(printed.stderr).toContain(`The session's folder does not exist: ${directory.path}/nowhere.`);
    const run = await runHere(home, ["resume", key, "--run"], { environment: { PATH: installed(home, "claude") } });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("which is no folder here.")]);
  });

  it("reports a session that was continued here, and a missing file", async () => {
    const { home, key, file } = await claudeCode("continued", directory.path);
    await runHere(home, ["append", key], { stdin: `${draft}\n` });
    const [object] = objects((await runHere(home, ["resume", key, "--json"])).stdout);
    expect(object).toMatchObject({ program: "claude-code", sessionId: id, path: file, isContinuedHere: true });
    renameSync(file, `${file}.gone`);
    const missing = await runHere(home, ["resume", key]);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining(`own file is missing: ${file}.`)]);
  });

  it("does not pass an id of a transcript as an option", async () => {
    const home = join(directory.path, "option");
    const file = join(home, "x.jsonl");
    mkdirSync(home, { recursive: true });
    const meta = {
      id: "--yolo",
      cwd: home,
      timestamp: "2026-01-01T00:00:00.000Z",
      originator: "codex",
      cli_version: "1",
    };
    const item = { type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] };
    const lines = [
      { timestamp: meta.timestamp, type: "session_meta", payload: meta },
      { timestamp: meta.timestamp, type: "response_item", payload: item },
    ];
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const key = "agent:main:import:direct:option";
    await runHere(home, ["import", file, "--key", key]);
    const run = await runHere(home, ["resume", key]);
    expect([run.code, run.stdout]).toEqual([1, ""]);
    expect(run.stderr).toContain("The transcript does not state the session's id in Codex.");
  });
});
