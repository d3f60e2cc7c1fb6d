import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import type { Run, RunOptions } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const id = "0b0e1b5e-0000-4000-8000-000000000001";

function claudeLine(at: number, text: string, cwd: string = "/srv/app"): string {
  const uuid = `0b0e1b5e-0000-4000-9000-${String(at).padStart(12, "0")}`;
  const message = { role: "user", content: text };
  const fields = { parentUuid: null, isSidechain: false, userType: "external", cwd, sessionId: id, version: "2.0.0" };
  return `${JSON.stringify({ ...fields, type: "user", message, uuid, timestamp: "2026-01-01T00:00:00.000Z" })}\n`;
}

function claudeSession(root: string = join(directory.path, ".claude"), cwd: string = "/srv/app"): string {
  const path = join(root, "projects", "-srv-app", `${id}.jsonl`);
  mkdirSync(join(root, "projects", "-srv-app"), { recursive: true });
  writeFileSync(path, claudeLine(1, "where are the lamps?", cwd));
  return path;
}

function codexSession(root: string = join(directory.path, ".codex")): string {
  const folder = join(root, "sessions", "2026", "01", "02");
  mkdirSync(folder, { recursive: true });
  const meta = { id: "0b0e1b5e-0000-7000-8000-000000000002", timestamp: "2026-01-02T00:00:00.000Z", cwd: "/srv/other" };
  const payload = { ...meta, originator: "codex_cli_rs", cli_version: "0.99.0", instructions: null };
  const content = [{ type: "input_text", text: "open the harbor" }];
  const lines = [
    { timestamp: meta.timestamp, type: "session_meta", payload },
    { timestamp: meta.timestamp, type: "response_item", payload: { type: "message", role: "user", content } },
  ];
  const path = join(folder, `rollout-2026-01-02T00-00-00-${meta.id}.jsonl`);
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return path;
}

function run(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const environment = { THROUGHLINE_HOME: join(directory.path, "home"), ...options.environment };
  return runHere(directory.path, args, { ...options, environment });
}

async function synced(args: readonly string[] = [], options: RunOptions = {}): Promise<Record<string, unknown>> {
  const { stdout, code } = await run(["sync", "--json", ...args], options);
  expect(code).toBe(0);
  return (objects(stdout)[0]?.["totals"] ?? {}) as Record<string, unknown>;
}

async function sessionCount(): Promise<number> {
  const { stdout } = await run(["sessions", "--json", "--quiet"]);
  return objects(stdout).filter(({ kind }) => kind === "session").length;
}

describe("sync", () => {
  it("imports what every program has, adds nothing twice, and takes what grew", async () => {
    const claude = claudeSession();
    codexSession();
    const first = await run(["sync", "--json"]);
    expect(objects(first.stdout)).toMatchObject([
      {
        kind: "sync",
        sources: [
          { format: "claude-code", state: "imported", records: 1, lost: [] },
          { format: "codex", state: "imported", lost: [] },
        ],
        totals: { sources: 2, imported: 2, grown: 0, unchanged: 0, refused: 0 },
      },
    ]);
    expect(await synced()).toMatchObject({ sources: 2, imported: 0, grown: 0, unchanged: 2 });
    appendFileSync(claude, claudeLine(2, "and the zebras?"));
    expect(await synced()).toMatchObject({ sources: 2, imported: 0, grown: 1, unchanged: 1, records: 1 });
    const found = await run(["search", "zebras", "--json"]);
    expect(objects(found.stdout)).toMatchObject([{ kind: "hit", seq: 2 }, { kind: "end" }]);
  });

  it("honors the variables of the programs, and reads nothing of their usual folders then", async () => {
    claudeSession();
    codexSession();
    const elsewhere = join(directory.path, "elsewhere");
    codexSession(elsewhere);
    const environment = { CLAUDE_CONFIG_DIR: join(directory.path, "none"), CODEX_HOME: elsewhere };
    const { stdout } = await run(["sync", "--json"], { environment });
    expect(objects(stdout)).toMatchObject([{ sources: [{ path: expect.stringContaining(elsewhere) as string }] }]);
  });

  it("reads only the programs that are named, and refuses a name that it does not know", async () => {
    claudeSession();
    codexSession();
    expect(await synced(["--programs", "codex"])).toMatchObject({ sources: 1, imported: 1 });
    const { code, stderr } = await run(["sync", "--programs", "nobody"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("--programs takes")]);
    // The other programs are still known after a sync of one.
    await synced();
    await synced(["--programs", "Codex"]);
    expect(await synced()).toMatchObject({ sources: 2, unchanged: 2 });
  });

  it("takes a path as well, and reports one that has no sessions", async () => {
    const copy = claudeSession(join(directory.path, "copy"));
    expect(await synced([copy])).toMatchObject({ imported: 1 });
    mkdirSync(join(directory.path, "empty"));
    const { code, stderr } = await run(["sync", join(directory.path, "empty")]);
    expect([code, stderr]).toEqual([3, expect.stringContaining("No session file was found in")]);
  });

  it("leaves out what sync.exclude names", async () => {
    claudeSession(undefined, "/srv/secret/app");
    codexSession();
    const environment = { THROUGHLINE_SYNC_EXCLUDE: "/srv/secret" };
    expect(await synced([], { environment })).toMatchObject({ imported: 1, skipped: 1 });
    expect((await run(["sessions", "--json"])).stdout).not.toContain(id);
  });

  it("with --dry-run writes nothing, and needs nobody's consent", async () => {
    claudeSession();
    expect(await synced(["--dry-run"])).toMatchObject({ imported: 1 });
    expect(existsSync(join(directory.path, "home", "sync.json"))).toBe(false);
    expect(await sessionCount()).toBe(0);
    expect((await run(["sync", "--dry-run", "--watch"])).code).toBe(2);
  });

  it("keeps the list of read files for this user only, and of this store", async () => {
    claudeSession();
    await synced();
    const store = `sqlite:${join(directory.path, "other.db")}`;
    expect(await synced(["--store", store])).toMatchObject({ imported: 1 });
    expect(await synced()).toMatchObject({ unchanged: 1 });
  });

  it("imports into a store elsewhere when the home cannot be made, and says what is not kept", async () => {
    const claude = claudeSession();
    const environment = { THROUGHLINE_HOME: join(claude, "home") };
    const store = `sqlite:${join(directory.path, "other.db")}`;
    const { code, stdout, stderr } = await run(["sync", "--json", "--store", store], { environment });
    expect([code, objects(stdout)]).toMatchObject([0, [{ totals: { imported: 1 } }]]);
    for (const words of ["The answer cannot be kept", "No lock can be taken", "read files cannot be written"])
      expect(stderr).toContain(words);
  });

  it("asks once on a terminal, with what each program has", { tags: ["slow"] }, async () => {
    claudeSession();
    codexSession();
    const environment = { HOME: directory.path, THROUGHLINE_HOME: join(directory.path, "home") };
    const start = (): ReturnType<typeof runInTerminal> =>
      runInTerminal(directory.path, ["sync"], { environment, columns: 200 });
    {
      await using refused = start();
      await refused.waitFor("Claude Code 1 session, Codex 1 session: ");
      await refused.waitFor("Files stay unchanged; nothing leaves this machine. [y/N] ");
      refused.write("n\r");
      await refused.waitFor("Nothing was imported");
      expect(await refused.exitCode()).toBe(0);
    }
    expect(await sessionCount()).toBe(0);
    {
      await using agreed = start();
      await agreed.waitFor("[y/N] ");
      agreed.write("y\r");
      await agreed.waitFor("Imported 2 sessions");
      expect(await agreed.exitCode()).toBe(0);
    }
    await using again = start();
    await again.waitFor("2 unchanged");
    expect(again.text()).not.toContain("[y/N]");
  });

  it("asks again for a store that others may read, and says where the texts go", { tags: ["slow"] }, async () => {
    claudeSession();
    await synced();
    const environment = { HOME: directory.path, THROUGHLINE_HOME: join(directory.path, "home") };
    const args = ["sync", "--store", "postgres://ada:secret@127.0.0.1:1/team"];
    await using terminal = runInTerminal(directory.path, args, { environment, columns: 200 });
    await terminal.waitFor("[y/N] ");
    expect(terminal.text()).toContain("their texts are copied to postgres://");
    expect(terminal.text()).not.toMatch(/secret|nothing leaves/);
    terminal.write("n\r");
    expect(await terminal.exitCode()).toBe(0);
  });

  it.each<readonly [string, readonly string[], Readonly<Record<string, string>>]>([
    ["of one sync", ["sync"], {}],
    ["of a watch", ["sync", "--watch"], {}],
    ["before another command", ["sessions"], { THROUGHLINE_SESSION_INHERIT_ENABLED: "true" }],
  ])("counts the sessions of a pass on the progress line %s", { tags: ["slow"] }, async (_name, args, environment) => {
    const text = Array.from({ length: 200 }, (_, at) => claudeLine(at, "words ".repeat(100))).join("");
    const folder = join(directory.path, ".claude", "projects", "-srv-app");
    mkdirSync(folder, { recursive: true });
    for (let at = 10; at < 40; at++) {
      const other = `${id.slice(0, -2)}${at}`;
      writeFileSync(join(folder, `${other}.jsonl`), text.replaceAll(id, other));
    }
    const named = { ...environment, THROUGHLINE_SESSION_INHERIT_SOURCE: join(directory.path, ".claude") };
    const interrupt = new AbortController();
    const { stderr } = await run(args, {
      isTerminal: true,
      environment: named,
      signal: interrupt.signal,
      onStderr: (chunk) => {
        if (chunk.includes("Watching")) interrupt.abort();
      },
    });
    const counts = [...stderr.matchAll(/syncing: (\d+) sessions?/g)].map(([, count]) => Number(count));
    expect(Math.max(...counts)).toBeGreaterThan(0);
  });

  it("watches until an interrupt, and finds a line, a new file and a new folder", { tags: ["slow"] }, async () => {
    const claude = claudeSession();
    const interrupt = new AbortController();
    let [printed, done] = ["", 0];
    const watched = await run(["sync", "--watch", "--json"], {
      signal: interrupt.signal,
      onStdout: (chunk) => {
        printed += chunk.toString();
        const passes = printed.split("\n").length - 1;
        if (passes === done) return;
        done = passes;
        if (passes === 1) appendFileSync(claude, claudeLine(2, "more"));
        if (passes === 2) {
          const folder = join(directory.path, ".claude", "projects", "-new");
          mkdirSync(folder);
          const text = readFileSync(claude, "utf8").replaceAll("0b0e1b5e", "0c0e1b5e");
          writeFileSync(join(folder, `${id.replace("0b0e1b5e", "0c0e1b5e")}.jsonl`), text);
        }
        if (passes === 3) interrupt.abort();
      },
    });
    expect(watched.code).toBe(130);
    const passes = objects(watched.stdout).map(({ totals }) => totals as { imported: number; grown: number });
    expect(passes.map(({ imported, grown }) => [imported, grown])).toEqual([
      [1, 0],
      [0, 1],
      [1, 0],
    ]);
  });
});

describe("a store from a backup", () => {
  it("gets again what was synced after the backup", async () => {
    const path = claudeSession();
    await synced();
    const backup = join(directory.path, "backup.db");
    expect((await run(["backup", backup])).code).toBe(0);
    appendFileSync(path, claudeLine(2, "in the attic"));
    codexSession();
    expect(await synced()).toMatchObject({ imported: 1, grown: 1 });
    expect(await synced()).toMatchObject({ sources: 2, unchanged: 2 });
    expect((await run(["restore-backup", backup, "--yes"])).code).toBe(0);
    expect(await synced()).toMatchObject({ imported: 1, grown: 1 });
  });
});
