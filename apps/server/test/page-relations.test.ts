import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Answered, type Serving } from "./serving.ts";

let serving: Serving;
const looked: string[] = [];
const missed: unknown[] = [];
beforeAll(async () => {
  serving = await serve();
});
afterAll(() => serving.close());

const ask = (key: string, below: string, options = {}): Promise<Answered> =>
  serving.ask("GET", `/sessions/${encodeURIComponent(key)}/${below}`, options);

async function make(key: string, sessionId: string, entry: object = {}, on = serving): Promise<void> {
  const made = await on.ask("PUT", `/sessions/${encodeURIComponent(key)}`, { body: { sessionId, entry } });
  expect(made.status).toBe(201);
}

const receipt = (format: string, sessionId: string, path: string): object => ({
  format,
  sessionId,
  path,
  sizeBytes: 1,
  sha256: "0",
  lineCount: 1,
  recordCount: 1,
  endsWithLineFeed: true,
});
const id = "7f2abd2d-7cfc-4447-9ddd-3ca8d14e02e9";

describe("the commands that continue a session", () => {
  it.each([
    ["claude-code", `cd '/src/my app' && claude --resume ${id}`],
    ["codex", `cd '/src/my app' && codex resume ${id}`],
    ["gemini", `cd '/src/my app' && gemini --resume ${id}`],
    ["pi", "cd '/src/my app' && pi --session '/x/it'\\''s.jsonl'"],
  ])("are those of %s", async (format, command) => {
    const key = `agent:main:r-${format}`;
    await make(key, `r-${format}`, { cwd: "/src/my app", importedFrom: receipt(format, id, "/x/it's.jsonl") });
    const { body } = await ask(key, "resume");
    expect(body["own"]).toEqual({ program: format, command, cwd: "/src/my app", isThere: null, missing: null });
    expect(body["here"]).toBe(`throughline chat --key=${key}`);
    expect(body["handOff"]).toContainEqual({ to: "codex", command: `throughline handoff --to codex ${key}` });
    expect(body).not.toHaveProperty("losses");
  });

  it.each([
    ["a session that began here", {}],
    ["an id that is an option", { importedFrom: receipt("claude-code", "--dangerously", "/x/a.jsonl") }],
    ["a receipt of a client", { importedFrom: { format: "claude-code", sessionId: 5 } }],
    ["an unknown program", { importedFrom: receipt("toString", id, "/x/a.jsonl") }],
    ["a sub-agent", { spawnedBy: "agent:main:x", importedFrom: receipt("claude-code", id, "/x/a.jsonl") }],
  ])("have none of its own for %s", async (name, entry) => {
    const key = `agent:main:${name.replaceAll(" ", "-")}`;
    await make(key, name.replaceAll(" ", "-"), entry);
    expect((await ask(key, "resume")).body["own"]).toBe(null);
  });

  it("quote every text for a shell", async () => {
    const hostile = "$(touch /tmp/x) `id` ; 'q' \"d\"";
    const key = `agent:main:h ${hostile}`;
    const made = await serving.ask("PUT", `/sessions/${encodeURIComponent(key)}/entry`, {
      body: { sessionId: "hostile", cwd: hostile, importedFrom: receipt("pi", id, hostile) },
      headers: { "if-none-match": "*" },
    });
    expect(made.status).toBe(200);
    const { body } = await ask(key, "resume");
    const { command } = body["own"] as { readonly command: string };
    const words = execFileSync("sh", [
      "-c",
      `cd() { printf '%s\\n' "$@"; }; pi() { printf '%s\\n' "$@"; }; ${command}`,
    ]);
    expect(words.toString()).toBe(`${hostile}\n--session\n${hostile}\n`);
    const here = execFileSync("sh", ["-c", `throughline() { printf '%s\\n' "$@"; }; ${String(body["here"])}`]);
    expect(here.toString()).toBe(`chat\n--key=${key}\n`);
  });

  it("say what another program has no place for", async () => {
    await serving.begin("agent:main:losses", [
      { type: "message", message: { role: "user", content: [{ type: "hologram" }] } },
      { type: "message", message: { role: "assistant", content: "x" } },
    ]);
    const { body } = await ask("agent:main:losses", "resume?to=codex");
    expect(body["losses"]).toContainEqual({ what: "left-out", kind: expect.any(String), records: 1 });
    expect((await ask("agent:main:losses", "resume?to=nobody")).status).toBe(400);
  });

  it("say whether the file is there where the host looks at files, and list when it was written", async () => {
    const own = await serve({
      sourceFiles: {
        modifiedMs: async (path) => (looked.push(path), path === "/x/there.jsonl" ? 1234 : null),
        missing: async ({ path, cwd, executable }) => {
          missed.push([path, cwd, executable]);
          return path === "/x/there.jsonl" ? [] : ["file", "program"];
        },
      },
    });
    await make("agent:main:f1", "f1", { importedFrom: receipt("claude-code", id, "/x/there.jsonl") }, own);
    await make("agent:main:f2", "f2", { importedFrom: receipt("claude-code", id, "/x/gone.jsonl") }, own);
    await make("agent:main:f3", "f3", {}, own);
    const ownOf = async (name: string): Promise<unknown> =>
      (await own.ask("GET", `/sessions/agent:main:${name}/resume`)).body["own"];
    expect([await ownOf("f1"), await ownOf("f2")]).toMatchObject([
      { isThere: true, missing: [] },
      { isThere: false, missing: ["file", "program"] },
    ]);
    expect(missed).toEqual([
      ["/x/there.jsonl", null, "claude"],
      ["/x/gone.jsonl", null, "claude"],
    ]);
    const { body } = await own.ask("GET", "/sessions?sort=key");
    const items = body["items"] as readonly { readonly sourceAtMs: number | null }[];
    expect(items.map(({ sourceAtMs }) => sourceAtMs)).toEqual([1234, null, null]);
    expect([...new Set(looked)]).toEqual(["/x/there.jsonl", "/x/gone.jsonl"]);
    await own.close();
  });
});

describe("relations of a session", () => {
  beforeAll(async () => {
    await serving.begin("agent:main:root", [{ type: "note" }, { type: "note" }]);
    const { body } = await serving.ask("GET", "/sessions/agent:main:root");
    const rootId = String(body["sessionId"]);
    await make("agent:main:child1", "child1", { spawnedBy: "agent:main:root" });
    await make("agent:main:child2", "child2", { spawnedBy: "agent:main:root" });
    await make("agent:other:child3", "child3", { spawnedBy: "agent:main:root" });
    await serving.ask("POST", "/sessions/agent:main:root/fork", {
      body: { key: "agent:main:fork", sessionId: "fork", atSeq: 1 },
    });
    await serving.ask("POST", "/sessions/agent:main:fork/fork", {
      body: { key: "agent:main:fork2", sessionId: "fork2" },
    });
    await make("agent:main:lost", "lost", {
      spawnedBy: "agent:main:nowhere",
      forkedFrom: { sessionId: "gone", key: "agent:main:gone" },
    });
    await serving.ask("PATCH", "/sessions/agent:main:root/entry", {
      body: { handedOff: [{ format: "codex", sessionId: "c1", path: "/x/c1" }, null, { format: 5 }] },
    });
    expect(rootId).not.toBe("");
  });
  const keysOf = (body: Answered["body"], name: string): readonly string[] =>
    (body[name] as readonly { readonly key: string }[]).map(({ key }) => key).toSorted();

  it("go both ways", async () => {
    const { body: root } = await ask("agent:main:root", "relations");
    expect(keysOf(root, "children")).toEqual(["agent:main:child1", "agent:main:child2", "agent:other:child3"]);
    expect(keysOf(root, "forks")).toEqual(["agent:main:fork"]);
    expect(root).toMatchObject({ parent: null, forkedFrom: null, isComplete: true });
    expect(root["handedOff"]).toEqual([{ format: "codex", sessionId: "c1", path: "/x/c1" }]);
    const { body: child } = await ask("agent:main:child1", "relations");
    expect(child["parent"]).toMatchObject({ key: "agent:main:root", isHere: true });
    const { body: fork } = await ask("agent:main:fork", "relations");
    expect(fork["forkedFrom"]).toMatchObject({ key: "agent:main:root", atSeq: 1, isHere: true });
    expect(keysOf(fork, "forks")).toEqual(["agent:main:fork2"]);
  });

  it("name what is not in the store", async () => {
    const { body } = await ask("agent:main:lost", "relations");
    expect(body["parent"]).toEqual({ key: "agent:main:nowhere", sessionId: null, isHere: false });
    expect(body["forkedFrom"]).toMatchObject({ key: "agent:main:gone", sessionId: "gone", isHere: false });
  });

  it("show a token of some agents nothing of others, and other tenants nothing", async () => {
    const token = await serving.tokenOf({ namespace: "", agents: ["main"], scopes: ["read"] });
    const { body } = await ask("agent:main:root", "relations", { token });
    expect(keysOf(body, "children")).toEqual(["agent:main:child1", "agent:main:child2"]);
    const theirs = await serving.tokenOf({ namespace: "", agents: ["other"], scopes: ["read"] });
    const child = await ask("agent:other:child3", "relations", { token: theirs });
    expect(child.body["parent"]).toEqual({ key: "agent:main:root", sessionId: null, isHere: false });
    const tenant = await serving.tokenOf({ namespace: "tenant", scopes: ["read"] });
    for (const below of ["relations", "resume"])
      for (const given of [tenant, theirs])
        expect((await ask("agent:main:root", below, { token: given })).status).toBe(404);
  });
});
