import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

/** The library the store uses, for another one in the same process would not see its locks. */
const Database = createRequire(import.meta.url)("better-sqlite3") as new (path: string) => {
  exec(sql: string): void;
  close(): void;
};

let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  for (const url of [undefined, `jsonl:${join(directory.path, "files")}`]) {
    await seed(
      directory.path,
      [
        { key: "agent:main:a", drafts: [user("the harbour lights are lit"), assistant("lit at dusk")] },
        { key: "agent:main:b", drafts: [user("harbour without any"), user("lights in the harbour, many lights")] },
        { key: "agent:work:c", drafts: [user("harbour lights of work")] },
      ],
      url,
    );
  }
});
afterEach(() => directory.remove());

const jsonl = (): readonly string[] => ["--store", `jsonl:${join(directory.path, "files")}`];

async function run(...args: readonly string[]): Promise<{
  readonly code: number | null;
  readonly out: Record<string, unknown>[];
  readonly talk: Record<string, unknown>[];
}> {
  const { code, stdout, stderr } = await runHere(directory.path, [...args, "--json"]);
  return { code, out: stdout === "" ? [] : objects(stdout), talk: stderr === "" ? [] : objects(stderr) };
}

describe("search", () => {
  const places = (out: readonly Record<string, unknown>[]): string[] =>
    out.flatMap(({ kind, key, seq }) => (kind === "hit" ? [`${String(key)} ${String(seq)}`] : [])).toSorted();

  it.each<readonly [string, readonly string[]]>([
    ["harbour lights", ["agent:main:a 1", "agent:main:b 2"]],
    ['"harbour lights"', ["agent:main:a 1"]],
    ["HARB*", ["agent:main:a 1", "agent:main:b 1", "agent:main:b 2"]],
    ["nothing of it", []],
  ])("finds for %s the same with an index and without", async (query, expected) => {
    const [indexed, scanned, files] = [
      await run("search", query),
      await run("search", query, "--scan"),
      await run("search", query, ...jsonl()),
    ];
    for (const { out } of [indexed, scanned, files]) expect(places(out)).toEqual(expected);
    expect(indexed.talk).toEqual([]);
    expect(files.talk).toMatchObject([{ kind: "note", message: "No index: every record is read." }]);
  });

  it("keeps to one session, one role, one agent and a number of hits", async () => {
    expect(places((await run("search", "harbour", "--session", "agent:main:b")).out)).toEqual([
      "agent:main:b 1",
      "agent:main:b 2",
    ]);
    expect(places((await run("search", "lit", "--role", "assistant")).out)).toEqual(["agent:main:a 2"]);
    expect(places((await run("search", "harbour", "--all-agents")).out)).toHaveLength(4);
    expect(places((await run("search", "harbour", "--limit", "1")).out)).toHaveLength(1);
    await run("delete", "agent:main:a");
    expect(places((await run("search", "lights")).out)).toEqual(["agent:main:b 2"]);
    expect(places((await run("search", "lights", "--archived")).out)).toEqual(["agent:main:a 1", "agent:main:b 2"]);
  });

  it("finds in an archived session of a key as many hits as were asked for, whatever the key's other sessions hold", async () => {
    await seed(directory.path, [
      { key: "agent:main:often", entry: { sessionId: "oldest" }, drafts: [user("needle"), user("needle again")] },
    ]);
    await run("reset", "agent:main:often");
    const better = JSON.stringify({ type: "message", message: { role: "user", content: "needle needle needle" } });
    await runHere(directory.path, ["append", "agent:main:often"], { stdin: `${better}\n`.repeat(5) });
    for (const scan of [[], ["--scan"]]) {
      const { out } = await run("search", "needle", "--session", "oldest", "--limit", "2", ...scan);
      expect(out.map(({ sessionId }) => sessionId)).toEqual(["oldest", "oldest", undefined]);
    }
    const current = await run("search", "needle", "--session", "agent:main:often");
    expect(current.out.some(({ sessionId }) => sessionId === "oldest")).toBe(false);
    expect(places(current.out)).toHaveLength(5);
  });

  it("finds what a fork shares when the session that wrote it is archived", async () => {
    expect((await run("fork", "agent:main:a", "--key", "agent:main:f")).code).toBe(0);
    await run("delete", "agent:main:a");
    expect(places((await run("search", "harbour")).out)).toContain("agent:main:f 1");
    expect(places((await run("search", "dusk", "--session", "agent:main:f")).out)).toEqual(["agent:main:f 2"]);
  });

  it("keeps to the calls of a tool and their answers, with an index and without", async () => {
    const call = { type: "toolCall", id: "c1", name: "web_search", arguments: { query: "harbour" } };
    const drafts = [
      user("harbour"),
      { type: "message", message: { role: "assistant", content: [call] } },
      {
        type: "message",
        message: { role: "toolResult", toolCallId: "c1", toolName: "web_search", content: "harbour" },
      },
    ];
    const session = { key: "agent:main:tools", drafts };
    for (const url of [undefined, `jsonl:${join(directory.path, "files")}`]) await seed(directory.path, [session], url);
    for (const where of [[], ["--scan"], jsonl()]) {
      const { out } = await run("search", "harbour", "--tool", "web_search", ...where);
      expect(places(out), where.join(" ")).toEqual(["agent:main:tools 2", "agent:main:tools 3"]);
      expect(places((await run("search", "harbour", "--tool", "web", ...where)).out)).toEqual([]);
    }
  });

  it.each(["\u{1F680}", "()[]{}", "\u2615 ***"])(
    "says of %s that there is no word in it to look for",
    async (query) => {
      for (const where of [[], ["--scan"], jsonl()]) {
        const { code, out, talk } = await run("search", query, ...where);
        expect([code, out]).toEqual([2, []]);
        expect(talk).toMatchObject([{ kind: "error", code: "USAGE", message: expect.stringContaining("no letter") }]);
      }
    },
  );

  it("tells on a terminal how much the index has still to take in, and in a pipe nothing", async () => {
    const drafts = Array.from({ length: 400 }, (_, index) => user(`filler ${index}`));
    await seed(directory.path, [{ key: "agent:main:many", drafts }]);
    const args = ["search", "filler", "--limit", "1"];
    const pipe = await runHere(directory.path, ["reindex", "--json"]);
    expect(pipe.stderr).toBe("");
    const database = new Database(join(directory.path, "sessions.db"));
    database.exec("UPDATE store_search_state SET rules = 0");
    const shown = await runHere(directory.path, args, { isTerminal: true });
    expect(shown.stderr).toContain("the search index takes in 405 records");
    database.exec("UPDATE store_search_state SET rules = 0");
    expect((await runHere(directory.path, args)).stderr).not.toContain("takes in");
    database.close();
  });

  it(
    "answers beside a writer that is stuck, and says what it read instead of the index",
    { tags: ["slow"] },
    async () => {
      const stuck = new Database(join(directory.path, "sessions.db"));
      stuck.exec("BEGIN IMMEDIATE");
      const { code, out, talk } = await run("search", "harbour lights");
      expect([code, places(out)]).toEqual([0, ["agent:main:a 1", "agent:main:b 2"]]);
      expect(talk).toMatchObject([{ kind: "finding", code: "SEARCH_INDEX_BEHIND", severity: "warning" }]);
      stuck.close();
    },
  );
});

describe("backup and restore-backup", () => {
  it("write the store to a new file and put it back, keeping what was there", async () => {
    const { out } = await run("backup", "kept.db");
    expect(out).toMatchObject([{ kind: "backup", sizeBytes: statSync(join(directory.path, "kept.db")).size }]);
    expect(statSync(join(directory.path, "kept.db")).mode & 0o777).toBe(0o600);
    await run("delete", "agent:main:a", "--purge", "--yes");
    expect((await run("restore-backup", "kept.db")).code).toBe(2);
    expect((await run("show", "agent:main:a")).code).toBe(1);
    const restored = await run("restore-backup", "kept.db", "--yes");
    expect(restored.out).toMatchObject([
      { kind: "restored", sessions: 3, keptPath: expect.stringContaining("before-restore") },
    ]);
    expect(existsSync(String(restored.out[0]?.["keptPath"]))).toBe(true);
    expect((await run("show", "agent:main:a")).out).toHaveLength(3);
    expect((await run("verify", "--full")).code).toBe(0);
  });

  it("refuse what is no backup, and say where there is none to be had", async () => {
    expect((await run("restore-backup", "missing.db", "--yes")).talk).toMatchObject([{ code: "FILE_NOT_FOUND" }]);
    const before = readdirSync(directory.path).toSorted();
    expect((await run("restore-backup", "chat.txt", "--store", "sqlite:x.db")).code).toBe(1);
    expect(readdirSync(directory.path).toSorted()).toEqual(before);
    for (const command of [
      ["backup", "x.db", "--store", "memory:"],
      ["reindex", "--store", "memory:"],
      ["restore-backup", "x.db", ...jsonl()],
    ])
      expect((await run(...command)).talk.at(-1)).toMatchObject({ code: "CAPABILITY_UNSUPPORTED" });
    expect((await run("backup", "folder", ...jsonl())).code).toBe(0);
    expect((await run("show", "agent:main:a", "--store", "jsonl:folder")).out).toHaveLength(3);
  });
});

describe("reindex", () => {
  it("keeps a damaged sessions.json and writes a new one, as doctor advises", { tags: ["slow"] }, async () => {
    const path = join(directory.path, "files/agents/main/sessions/sessions.json");
    const whole = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, unknown>>;
    const theirs = { ...whole, "agent:main:theirs": { sessionId: "t1", updatedAt: 5 } };
    const damaged = JSON.stringify(theirs, null, 2).slice(0, -1);
    writeFileSync(path, damaged);
    const found = await run("doctor", ...jsonl());
    expect([found.code, found.out[0]]).toMatchObject([3, { code: "INDEX_UNREADABLE", severity: "error", path }]);
    expect(found.out[0]?.["remedy"]).toContain("throughline reindex");
    const files = [path, join(directory.path, "files/agents/main/throughline/index.db")];
    const { code, out } = await run("reindex", ...jsonl());
    expect([code, out]).toMatchObject([0, [{ kind: "reindex", store: "jsonl", lag: null }]]);
    expect(out[0]?.["files"]).toMatchObject(expect.arrayContaining(files.map((one) => ({ path: one, sessions: 3 }))));
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(theirs);
    const torn = join(directory.path, "files/agents/main/throughline/torn");
    expect(readdirSync(torn).map((name) => readFileSync(join(torn, name), "utf8"))).toEqual([damaged]);
    expect(await run("doctor", ...jsonl())).toMatchObject({ code: 0, talk: [] });
    expect((await runHere(directory.path, ["reindex", ...jsonl()])).stdout).toContain(
      "The jsonl store keeps no search index: a search reads every record.",
    );
  });

  it("makes the index anew, and everything is found again", async () => {
    expect((await run("reindex")).out).toMatchObject([{ kind: "reindex", lag: 0, files: [] }]);
    expect((await run("search", "harbour", "--all-agents")).out).toHaveLength(5);
    expect((await run("stats")).out).toMatchObject([{ sessions: 3, records: 5, messages: 5, agents: 2, searchLag: 0 }]);
  });
});
