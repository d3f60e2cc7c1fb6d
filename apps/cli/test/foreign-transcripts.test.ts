import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { foreignFixtures } from "./foreign-fixtures.ts";
import { objects, runHere, temporaryDirectory, type Run } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

/** One of lines and one of documents: what a writer is given does not depend on more. */
const sources: ReadonlySet<string> = new Set(["claude-code", "ai-sdk"]);

const question = "What is in a.txt?";

interface ImportedSource {
  readonly state: string;
  readonly format: string;
  readonly key: string;
  readonly records: number;
  readonly lost: readonly unknown[];
}

function sourcesOf({ stdout }: Run): readonly ImportedSource[] {
  return objects(stdout)[0]?.["sources"] as readonly ImportedSource[];
}

describe("a session of another program", () => {
  it.each(foreignFixtures)("is imported, shown, sent, and exported as it came: $format", async (fixture) => {
    const { format, path, stages, isWritten } = fixture;
    const home = join(directory.path, format);
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    for (const [stage, text] of stages.entries()) {
      writeFileSync(file, text);
      const run = await runHere(home, ["import", file, "--json"]);
      const [source] = sourcesOf(run);
      expect([run.code, run.stderr]).toEqual([0, ""]);
      expect(source).toMatchObject({ format, state: stage === 0 ? "imported" : "grown", lost: [] });
      expect(sourcesOf(await runHere(home, ["import", file, "--json"]))[0]).toMatchObject({ state: "unchanged" });
      expect(readFileSync(file, "utf8")).toBe(text);
      const key = source?.key ?? "";
      const exported = await runHere(home, ["export", key, ...(isWritten ? ["--to", format] : [])]);
      expect(exported.code).toBe(0);
      if (isWritten) expect(exported.stdout).toBe(text);
    }
    const key = sourcesOf(await runHere(home, ["import", file, "--json"]))[0]?.key ?? "";
    const shown = objects((await runHere(home, ["show", key, "--json"])).stdout);
    expect(JSON.stringify(shown)).toContain("It says hello.");
    const [sent] = objects((await runHere(home, ["context", key, "--provider", "anthropic", "--json"])).stdout);
    const messages = sent?.["messages"] as readonly { readonly role: string; readonly content: readonly object[] }[];
    expect(messages[0]).toMatchObject({ role: "user", content: [{ type: "text", text: question }] });
    const blocks = messages.flatMap(({ content }) => content.map((block) => (block as { type: string }).type));
    expect(blocks.slice(0, 4)).toEqual(["text", "tool_use", "tool_result", "text"]);
    const raw = await runHere(home, ["show", key, "--all-branches", "--raw"]);
    if (stages.at(-1)?.includes("novelty") === true) expect(raw.stdout).toContain('"of":["nobody",null]');
  });

  it.each(foreignFixtures.filter(({ format }) => sources.has(format)))(
    "is written for every other program, and what it loses is reported: $format",
    async ({ format, path, stages }) => {
      const home = join(directory.path, `from-${format}`);
      const file = join(home, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, stages.at(-1) ?? "");
      const key = sourcesOf(await runHere(home, ["import", file, "--json"]))[0]?.key ?? "";
      for (const { format: to, isWritten } of foreignFixtures) {
        if (!isWritten || to === format) continue;
        const target = join(home, `as-${to}.jsonl`);
        const written = await runHere(home, ["export", key, "--to", to, "-o", target]);
        expect([to, written.code]).toEqual([to, 0]);
        const again = await runHere(home, ["import", target, "--key", `agent:main:import:direct:${to}`, "--json"]);
        expect(sourcesOf(again)[0]).toMatchObject({ format: to, state: "imported", lost: [] });
        const [sent] = objects(
          (await runHere(home, ["context", `agent:main:import:direct:${to}`, "--provider", "text", "--json"])).stdout,
        );
        for (const words of [question, "hello", "It says hello."])
          expect([to, JSON.stringify(sent)]).toEqual([to, expect.stringContaining(words)]);
      }
    },
  );
});

describe("import --watch", () => {
  it("imports what is added until an interrupt, and prints changes only", { tags: ["slow"] }, async () => {
    const home = join(directory.path, "watched");
    const [fixture] = foreignFixtures;
    const [before = "", after = ""] = fixture?.stages ?? [];
    const file = join(home, "session.jsonl");
    mkdirSync(home, { recursive: true });
    writeFileSync(file, before);
    const interrupt = new AbortController();
    let printed = "";
    const run = await runHere(home, ["import", file, "--watch", "--json"], {
      signal: interrupt.signal,
      onStdout: (chunk) => {
        printed += chunk.toString();
        const passes = printed.split("\n").length - 1;
        if (passes === 1) writeFileSync(file, after);
        if (passes === 2) interrupt.abort();
      },
    });
    expect(run.code).toBe(130);
    const passes = run.stdout.trimEnd().split("\n");
    const states = passes.map((line) => sourcesOf({ ...run, stdout: `${line}\n` }).map(({ state }) => state));
    expect(states).toEqual([["imported"], ["grown"]]);
    const refused = await runHere(home, ["import", file, "--watch", "--dry-run"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--dry-run")]);
  });
});

const targets = [
  ["claude-code", "CLAUDE_CONFIG_DIR", ".claude", "projects/", "claude --resume"],
  ["codex", "CODEX_HOME", ".codex", "sessions/", "codex resume"],
  ["gemini", "GEMINI_CLI_HOME", ".gemini", ".gemini/tmp/", "gemini --resume"],
  ["pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions/", "pi --session"],
  ["openclaw", "OPENCLAW_STATE_DIR", ".openclaw", "agents/main/sessions/", "openclaw tui --session"],
] as const;

describe("handoff", () => {
  it.each(targets)(
    "to %s writes a new session where the program finds it",
    async (to, variable, folder, below, command) => {
      const [fixture] = foreignFixtures.filter(({ format }) => format !== to);
      const home = join(directory.path, `to-${to}`);
      const source = join(home, "source.jsonl");
      mkdirSync(home, { recursive: true });
      writeFileSync(source, fixture?.stages.at(-1) ?? "");
      const key = sourcesOf(await runHere(home, ["import", source, "--json"]))[0]?.key ?? "";
      const before = (await runHere(home, ["show", key, "--raw", "--all-branches"])).stdout;
      const paths = new Set<string>();
      for (const environment of [{}, {}, { [variable]: join(home, "elsewhere") }]) {
        const run = await runHere(home, ["handoff", key, "--to", to, "--json"], { environment });
        const [written] = objects(run.stdout);
        expect([run.code, written?.["kind"], written?.["cwd"]]).toEqual([0, "handoff", "/home/u/project"]);
        const path = String(written?.["path"]);
        expect(written?.["command"]).toMatch(/^cd \/home\/u\/project && /);
        expect(written?.["command"]).toContain(command);
        expect(existsSync(path)).toBe(true);
        const root = variable in environment ? join(home, "elsewhere") : join(home, folder);
        // OpenClaw's second session gets a state directory of its own.
        expect(path.startsWith(root)).toBe(true);
        expect(path).toContain(below);
        paths.add(path);
        const name = `agent:main:import:direct:back-${paths.size}`;
        const again = await runHere(home, ["import", path, "--key", name, "--json"]);
        expect(sourcesOf(again)[0]).toMatchObject({ state: "imported", lost: [] });
        const sent = (await runHere(home, ["context", name, "--provider", "text"])).stdout;
        for (const words of [question, "hello", "It says hello."]) expect(sent).toContain(words);
      }
      expect(paths.size).toBe(3);
      expect((await runHere(home, ["show", key, "--raw", "--all-branches"])).stdout).toBe(before);
    },
  );

  it("to Gemini CLI writes into the folder that the program has given the project", async () => {
    const home = join(directory.path, "noted");
    const notes = join(home, ".gemini/tmp");
    for (const [folder, project] of [
      ["other", "/home/u/other"],
      ["project-1", "/home/u/project"],
    ] as const) {
      mkdirSync(join(notes, folder), { recursive: true });
      writeFileSync(join(notes, folder, ".project_root"), project);
    }
    mkdirSync(join(notes, "no-note"));
    const source = join(home, "source.jsonl");
    writeFileSync(source, foreignFixtures[0]?.stages.at(-1) ?? "");
    const key = sourcesOf(await runHere(home, ["import", source, "--json"]))[0]?.key ?? "";
    const run = await runHere(home, ["handoff", key, "--to", "gemini", "--json"]);
    const path = String(objects(run.stdout)[0]?.["path"]);
    expect(path.startsWith(join(notes, "project-1/chats/session-"))).toBe(true);
    const [imported] = sourcesOf(await runHere(home, ["import", join(home, ".gemini"), "--key", "back", "--json"]));
    expect(imported).toMatchObject({ format: "gemini", state: "imported" });
    const entry = objects((await runHere(home, ["show", imported?.key ?? "", "--json"])).stdout);
    expect(JSON.stringify(entry)).toContain("It says hello.");
  });

  it.each(targets)("to %s is not imported again until its file has grown", async (to) => {
    const [fixture] = foreignFixtures.filter(({ format }) => format !== to);
    const home = join(directory.path, `again-${to}`);
    mkdirSync(home, { recursive: true });
    const source = join(home, "source.jsonl");
    writeFileSync(source, fixture?.stages.at(-1) ?? "");
    const key = sourcesOf(await runHere(home, ["import", source, "--json"]))[0]?.key ?? "";
    const files: string[] = [];
    for (const _time of [1, 2]) {
      const [written] = objects((await runHere(home, ["handoff", key, "--to", to, "--json"])).stdout);
      expect(written?.["isCopy"]).toBe(true);
      files.push(String(written?.["path"]));
    }
    const [entry] = objects((await runHere(home, ["entry", key, "--json"])).stdout);
    const noted = (entry?.["entry"] as { readonly handedOff?: readonly object[] } | undefined)?.handedOff;
    expect(noted).toMatchObject(files.map((path) => ({ format: to, path, sizeBytes: statSync(path).size })));
    for (const path of files) {
      const run = await runHere(home, ["import", path, "--json"]);
      expect(sourcesOf(run)[0]).toMatchObject({ state: "skipped", records: 0 });
      expect(run.stderr).toContain("SESSION_LEFT_ALONE");
      expect(run.stderr).toContain("is a hand-off of");
    }
    const counted = async (): Promise<number> => objects((await runHere(home, ["sessions", "--json"])).stdout).length;
    expect(await counted()).toBe(2);
    const [file = ""] = files;
    if (to === "gemini") return;
    appendFileSync(file, `${readFileSync(file, "utf8").trimEnd().split("\n").at(-1)?.replaceAll("hello", "grown")}\n`);
    const [grown] = sourcesOf(await runHere(home, ["import", file, "--json"]));
    expect([grown?.state, await counted()]).toEqual(["imported", 3]);
  });

  it.each(foreignFixtures.filter(({ format }) => ["claude-code", "codex", "gemini"].includes(format)))(
    "of a session of $format to its own program prints its resume command, while its file is there",
    async ({ format, path, stages }) => {
      const home = join(directory.path, `own-${format}`);
      const source = join(home, path);
      mkdirSync(dirname(source), { recursive: true });
      writeFileSync(source, stages.at(-1) ?? "");
      const key = sourcesOf(await runHere(home, ["import", source, "--json"]))[0]?.key ?? "";
      const before = readdirSync(home, { recursive: true }).length;
      const own = await runHere(home, ["handoff", key, "--to", format]);
      expect([own.code, own.stdout]).toEqual([
        0,
        expect.stringMatching(/^cd \S+ && (claude --resume|codex resume|gemini --resume) [\w-]+\n$/),
      ]);
      expect(readdirSync(home, { recursive: true }).length).toBe(before);
      const draft = JSON.stringify({ type: "message", message: { role: "user", content: "and then?" } });
      renameSync(source, `${source}.gone`);
      const missing = await runHere(home, ["handoff", key, "--to", format]);
      expect(missing.stderr).toContain(`The session's own file is missing: ${source}. A copy was written.\n`);
      expect(missing.stdout.split("\n").length).toBe(3);
      renameSync(`${source}.gone`, source);
      await runHere(home, ["append", key], { stdin: `${draft}\n` });
      const continued = await runHere(home, ["handoff", key, "--to", format]);
      expect(continued.stderr).toContain("The session was continued here");
    },
  );

  it("of a sub-agent of Claude Code writes a session, since the program resumes none", async () => {
    const home = join(directory.path, "sub-agent");
    const source = join(home, ".claude/projects/-home-u-app/agent-1a2b3c4d.jsonl");
    mkdirSync(dirname(source), { recursive: true });
    const common = { sessionId: "7f2abd2d-7cfc-4447-9ddd-3ca8d14e02e9", agentId: "1a2b3c4d", isSidechain: true };
    const message = { role: "user", content: "hello" };
    const line = { type: "user", ...common, uuid: "u1", parentUuid: null, timestamp: "2026-01-01T00:00:00.000Z" };
    writeFileSync(source, `${JSON.stringify({ ...line, cwd: "/home/u/app", message })}\n`);
    const key = sourcesOf(await runHere(home, ["import", source, "--json"]))[0]?.key ?? "";
    const [written] = objects((await runHere(home, ["handoff", key, "--to", "claude-code", "--json"])).stdout);
    expect(written?.["isCopy"]).toBe(true);
    expect(written?.["command"]).toMatch(/claude --resume [0-9a-f-]{36}$/);
  });

  it("to a program that is not known, or to none, is refused", async () => {
    const home = join(directory.path, "to-nobody");
    expect((await runHere(home, ["handoff", "x", "--to", "nobody"])).code).toBe(2);
    expect((await runHere(home, ["handoff", "x"])).code).toBe(2);
  });
});
