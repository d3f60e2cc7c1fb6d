import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
const usage = { input: 100, output: 50, cacheRead: 800, cacheWrite: 50 };
const storeUrl = `sqlite:${join(home, "sessions.db")}`;

const run = (...args: readonly string[]): Promise<Run> => runHere(home, args);
const kindsOf = (text: string, kind: string): Record<string, unknown>[] =>
  objects(text).filter((value) => value["kind"] === kind);

beforeAll(async () => {
  await seed(home, [
    ...Array.from({ length: 60 }, (_, index) => ({
      key: `agent:many:s${String(index).padStart(2, "0")}`,
      drafts: [user(`${index}`)],
    })),
    {
      key: "agent:main:long",
      entry: { label: "Long", contextTokens: 2000 },
      drafts: [
        { ...user("first"), id: "m1" },
        { ...assistant("one", usage), id: "m2" },
        { ...user("second"), id: "m3" },
        { type: "compaction", id: "c1", summary: "they spoke", firstKeptEntryId: "m3", tokensBefore: 1000 },
        { type: "label", id: "l1", targetId: "m3", label: "here" },
        { ...user("third"), id: "m4" },
        { ...assistant("three"), id: "m5" },
      ],
    },
    {
      key: "agent:main:used",
      entry: { contextTokens: 2000 },
      drafts: [user("a"), assistant("b", usage), assistant("c", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 })],
    },
  ]);
});
afterAll(() => directory.remove());

describe("sessions", () => {
  it("shows people the newest 50 and says how many there are", async () => {
    const { stdout, stderr } = await run("sessions", "--agent", "many");
    expect(stdout.trim().split("\n")).toHaveLength(50);
    expect(stdout).toContain("agent:many:s59");
    expect(stderr).toMatch(/^50 of 60 shown \(--limit all shows all\)\n$/);
    expect((await run("sessions", "--agent", "many", "--limit", "all")).stderr).toBe("60 of 60 shown\n");
  });

  it("goes on at the cursor until every session was shown once", async () => {
    const keys: unknown[] = [];
    let cursor: string | null = null;
    do {
      const { stdout } = await run(
        "sessions",
        "--agent",
        "many",
        "--json",
        "--limit",
        "17",
        ...(cursor === null ? [] : ["--cursor", cursor]),
      );
      keys.push(...kindsOf(stdout, "session").map(({ key }) => key));
      cursor = objects(stdout).at(-1)?.["nextCursor"] as string | null;
    } while (cursor !== null);
    expect(keys).toHaveLength(60);
    expect(new Set(keys).size).toBe(60);
  });

  it("chooses by agent, time and state, and sorts by key", async () => {
    expect(kindsOf((await run("sessions", "--all-agents", "--json")).stdout, "session")).toHaveLength(62);
    expect(kindsOf((await run("sessions", "--json", "--since", "1h")).stdout, "session")).toHaveLength(2);
    expect(kindsOf((await run("sessions", "--json", "--until", "1h")).stdout, "session")).toHaveLength(0);
    const sorted = kindsOf((await run("sessions", "--json", "--sort", "key")).stdout, "session").map(({ key }) => key);
    expect(sorted).toEqual(["agent:main:long", "agent:main:used"]);
    await using store = await openStore(storeUrl, { workingDirectory: home, create: false });
    await store.move(sessionRef({ key: "agent:many:s00" }), { kind: "archive" });
    const states = async (...args: readonly string[]): Promise<unknown[]> =>
      kindsOf((await run("sessions", "--agent", "many", "--json", "--sort", "key", ...args)).stdout, "session").map(
        ({ state }) => state,
      );
    expect(await states()).toHaveLength(59);
    expect((await states("--archived"))[0]).toBe("archived");
  });
});

describe("show", () => {
  const ids = async (...args: readonly string[]): Promise<unknown[]> =>
    kindsOf((await run("show", "agent:main:long", "--json", ...args)).stdout, "record").map(({ id }) => id);

  it("begins where the context begins, and goes back on request", async () => {
    expect(await ids()).toEqual(["m3", "c1", "m4", "m5"]);
    expect(await ids("--all")).toEqual(["m1", "m2", "m3", "c1", "m4", "m5"]);
    expect(await ids("--all-branches")).toEqual(["m1", "m2", "m3", "c1", "l1", "m4", "m5"]);
  });

  it("chooses by place and role", async () => {
    expect(await ids("--tail", "2")).toEqual(["m4", "m5"]);
    expect(await ids("--all", "--role", "user")).toEqual(["m1", "m3", "m4"]);
    expect(await ids("--all", "--role", "user", "--tail", "1", "--after-seq", "1")).toEqual(["m4"]);
    expect(await ids("--after-seq", "100")).toEqual([]);
  });

  it("prints text for people and records for programs", async () => {
    const shown = await run("show", "long");
    expect(shown.stdout).toMatch(
      /#3 user {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00\nsecond\n\n#4 compaction .*\nthey spoke\n/,
    );
    const raw = (await run("show", "Long", "--raw", "--tail", "1")).stdout;
    expect(JSON.parse(raw)).toMatchObject({ type: "message", id: "m5", parentId: "m4" });
  });

  it("cuts a long record on a terminal only, and says so", async () => {
    await seed(home, [{ key: "agent:main:wide", drafts: [user("y".repeat(10_000))] }]);
    const terminal = await runHere(home, ["show", "agent:main:wide"], { isTerminal: true });
    expect(terminal.stdout).toContain("6000 more characters; --raw shows all");
    expect((await run("show", "agent:main:wide")).stdout).toContain("y".repeat(10_000));
  });
});

describe("sessions that are special", () => {
  it("are shown, exported and copied although a newer version wrote something in them", async () => {
    await seed(home, [
      {
        key: "agent:main:newer",
        drafts: [
          user("a"),
          { type: "custom", customType: "throughline.future", v: 9, critical: true, data: {} },
          user("b"),
        ],
      },
    ]);
    const context = await run("context", "agent:main:newer", "--json");
    expect([context.code, objects(context.stderr)[0]?.["code"]]).toEqual([1, "RECORD_FROM_NEWER_VERSION"]);
    expect(kindsOf((await run("show", "agent:main:newer", "--all-branches", "--json")).stdout, "record")).toHaveLength(
      3,
    );
    expect((await run("export", "agent:main:newer")).stdout.split("\n")).toHaveLength(5);
    expect((await run("doctor")).stdout).toContain("no context is built until this program is upgraded");
  });

  it("are empty, and nothing fails on them", async () => {
    await using store = await openStore(storeUrl, { workingDirectory: home, create: false });
    await store.save(sessionRef({ key: "agent:main:empty" }), { sessionId: "empty-1" }, { ifRevision: null });
    const [context] = objects((await run("context", "empty-1", "--provider", "anthropic", "--json")).stdout);
    expect(context).toMatchObject({ recordsInContext: 0, headId: null, lastSeq: 0, messages: [], model: null });
    expect((await run("show", "empty-1", "--json")).stdout).toBe('{"kind":"end","count":0,"nextCursor":null}\n');
    for (const command of [
      ["context", "empty-1"],
      ["show", "empty-1"],
      ["export", "empty-1"],
      ["copy", "empty-1", "--to-store", `jsonl:${join(home, "empty-copy")}`],
    ]) {
      expect([command[0], (await run(...command)).code]).toEqual([command[0], 0]);
    }
  });
});

describe("export", () => {
  it("goes into a directory by session id, and everything below one with an index", async () => {
    const folder = join(home, "one");
    mkdirSync(folder);
    expect((await run("export", "agent:main:used", "-o", folder)).code).toBe(0);
    expect(readdirSync(folder)).toEqual(["id-agent-main-used.jsonl"]);
    const all = join(home, "all");
    const { stdout } = await run("export", "--all", "--to", "openclaw", "-o", all, "--agent", "many", "--json");
    expect(kindsOf(stdout, "export").at(-1)).toMatchObject({
      key: null,
      path: join(all, "agents/many/sessions/sessions.json"),
    });
    expect(readdirSync(join(all, "agents/many/sessions"))).toHaveLength(60);
  });

  it("is refused to a terminal", async () => {
    const { code, stdout } = await runHere(home, ["export", "agent:main:used"], { isTerminal: true });
    expect([code, stdout]).toEqual([2, ""]);
  });
});

describe("import, export and copy", () => {
  it("give a file back byte for byte, once and through a second store", async () => {
    const file = join(home, "foreign.jsonl");
    const header = '{"type":"session","version":3,"id":"f1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';
    const odd =
      '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"\\u00e9"},"n":1.0,"big":12345678901234567890}';
    writeFileSync(file, `${header}\r\n${odd}\n\n{oops\n${odd.replace('"a"', '"b"').replace("null", '"a"')}`);
    const first = await run("import", file, "--json", "--key", "agent:main:import:direct:f1");
    expect(first.code).toBe(3);
    expect(objects(first.stdout)[0]).toMatchObject({ totals: { imported: 1, records: 5 } });
    expect(
      objects((await run("import", file, "--json", "--key", "agent:main:import:direct:f1")).stdout)[0],
    ).toMatchObject({ totals: { unchanged: 1, records: 0 } });
    expect((await run("export", "agent:main:import:direct:f1")).stdout).toBe(readFileSync(file, "utf8"));
    const other = `jsonl:${join(home, "second")}`;
    expect((await run("copy", "agent:main:import:direct:f1", "--to-store", other)).code).toBe(0);
    expect((await run("export", "agent:main:import:direct:f1", "--store", other)).stdout).toBe(
      readFileSync(file, "utf8"),
    );
    const target = join(home, "out/f1.jsonl");
    expect((await run("export", "agent:main:import:direct:f1", "-o", target)).code).toBe(0);
    expect(readFileSync(target)).toEqual(readFileSync(file));
  });

  it("write nothing on a dry run", async () => {
    const fresh = join(home, "dry");
    const file = join(home, "dry.jsonl");
    writeFileSync(
      file,
      '{"type":"session","version":3,"id":"dry","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}\n' +
        '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"x"}}\n',
    );
    const { stdout } = await run("import", file, "--dry-run", "--json", "--store", `jsonl:${fresh}`);
    expect(objects(stdout)[0]).toMatchObject({ sources: [{ state: "imported", records: 2 }] });
    expect(
      existsSync(fresh)
        ? readdirSync(fresh, { recursive: true }).filter((name) => String(name).endsWith(".jsonl"))
        : [],
    ).toEqual([]);
  });
});
