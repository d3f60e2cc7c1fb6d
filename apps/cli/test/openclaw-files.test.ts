import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const store = (name: string): readonly string[] => ["--store", `jsonl:${join(directory.path, name)}`];
const sessionsOf = (name: string): string => join(directory.path, name, "agents/main/sessions");
const namesIn = (name: string): readonly string[] =>
  readdirSync(sessionsOf(name)).filter((file) => file !== "sessions.json");

async function run(args: readonly string[], stdin?: string): Promise<readonly Record<string, unknown>[]> {
  const { code, stdout, stderr } = await runHere(
    directory.path,
    [...args, "--json"],
    stdin === undefined ? {} : { stdin },
  );
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('"kind":"error"')]);
  return stdout === "" ? [] : objects(stdout);
}

const say = (key: string, content: string, name = "files"): Promise<unknown> =>
  run(["append", key, ...store(name)], JSON.stringify({ type: "message", message: { role: "user", content } }));

const group = "agent:main:telegram:group:42";
const topic = `${group}:topic:a b`;

describe("a thread in a JSON Lines store", () => {
  it("has its topic in the name of its transcript, and every command finds it [C06]", async () => {
    await say(group, "in the group");
    await say(topic, "in the topic");
    const [{ sessionId = "" } = {}] = (await run(["entry", topic, ...store("files")])) as { sessionId?: string }[];
    const name = `${sessionId}-topic-a%20b.jsonl`;
    const path = join(sessionsOf("files"), name);
    expect(namesIn("files")).toContain(name);
    const index = JSON.parse(readFileSync(join(sessionsOf("files"), "sessions.json"), "utf8")) as object;
    expect(index).toMatchObject({ [topic]: { sessionId, sessionFile: path } });
    expect(JSON.parse(readFileSync(path, "utf8").split("\n", 1)[0] ?? "")).toMatchObject({ cwd: process.cwd() });
    await run(["fork", topic, "--key", `${group}:thread:9`, ...store("files")]);
    expect(namesIn("files").filter((one) => one.endsWith("-topic-9.jsonl"))).toHaveLength(1);
    await run(["reset", topic, "--yes", ...store("files")]);
    expect(namesIn("files").filter((one) => one.startsWith(`${name}.reset.`))).toHaveLength(1);
    await run(["delete", topic, "--yes", ...store("files")]);
    await run(["restore", "--archive", sessionId, ...store("files")]);
    expect(namesIn("files")).toContain(name);
    expect(await run(["doctor", ...store("files")])).toMatchObject([{ kind: "end" }]);
    expect(await run(["doctor", path])).toMatchObject([{ kind: "end" }]);
    const out = join(directory.path, "out");
    await run(["export", "--all", "--to", "openclaw", "-o", out, ...store("files")]);
    expect(namesIn("out")).toContain(name);
    await run(["import", out, ...store("again")]);
    expect(namesIn("again")).toContain(name);
    await say(topic, "after the import", "again");
    expect(readFileSync(join(sessionsOf("again"), name), "utf8")).toContain("after the import");
    await run(["rename", topic, "agent:main:plain", ...store("files")]);
    await say("agent:main:plain", "renamed");
    expect(readFileSync(path, "utf8")).toContain("renamed");
  });
});

describe("an export that was killed", () => {
  it("leaves a file behind that the next export removes, and no file of a process that lives or is at work", async () => {
    await say(group, "hi");
    const out = join(directory.path, "out");
    mkdirSync(out);
    const killed = spawnSync("true").pid;
    const name = (pid: number): string => `.throughline-${pid}-${randomUUID()}.tmp`;
    const [left, living, fresh, other] = [name(killed), name(process.pid), name(killed), ".throughline-notes.tmp"];
    for (const file of [left, living, fresh, other]) writeFileSync(join(out, file), "half");
    const earlier = new Date(Date.now() - 120_000);
    for (const file of [left, living, other]) utimesSync(join(out, file), earlier, earlier);
    await run(["export", group, "-o", join(out, "a.jsonl"), ...store("files")]);
    expect(readdirSync(out).toSorted()).toEqual([living, fresh, other, "a.jsonl"].toSorted());
  });
});

describe("export --to openclaw", () => {
  it("gives records of unknown types as the lines they came in, and hangs the others on one another", async () => {
    const header = { type: "session", version: 3, id: "unknown", timestamp: "2026-01-02T03:04:05.006Z", cwd: "/w" };
    const message = (id: string, parentId: string | null, text: string): string =>
      JSON.stringify({
        type: "message",
        id,
        parentId,
        timestamp: "2026-01-02T03:04:06.006Z",
        message: { role: "user", content: text },
      });
    const lines = [
      JSON.stringify(header),
      message("a1", null, "one"),
      '{"type":"mystery","x":{"y":[1.0]},  "spaced":true}',
      '{"type":"mystery","id":"m2","y":1}',
      '{"type":"mystery","id":"m3","parentId":"a1","timestamp":"2026-01-02T03:04:07.006Z"}',
      message("a2", "a1", "two"),
      '{"type":"mystery","last":1}',
    ];
    mkdirSync(join(directory.path, "source"));
    const path = join(directory.path, "source/unknown.jsonl");
    writeFileSync(path, `${lines.join("\n")}\n`);
    await run(["import", path, "--key", "agent:main:unknown", ...store("files")]);
    const exported = async (): Promise<string> =>
      (await runHere(directory.path, ["export", "agent:main:unknown", "--to", "openclaw", ...store("files")])).stdout;
    expect(await exported()).toBe(`${lines.join("\n")}\n`);
    await say("agent:main:unknown", "three");
    const added = (await exported()).trimEnd().split("\n");
    expect(added.slice(0, -1)).toEqual(lines);
    expect(JSON.parse(added.at(-1) ?? "")).toMatchObject({ parentId: "a2", message: { content: "three" } });
  });

  it("takes a record of an unknown type for none where it makes ids for a file without any", async () => {
    const lines = [
      '{"type":"session","id":"old","timestamp":"2026-01-02T03:04:05.006Z","cwd":"/w"}',
      '{"type":"message","timestamp":"2026-01-02T03:04:06.006Z","message":{"role":"user","content":"one"}}',
      '{"type":"mystery","y":1}',
      '{"type":"message","timestamp":"2026-01-02T03:04:07.006Z","message":{"role":"user","content":"two"}}',
    ];
    const path = join(directory.path, "old.jsonl");
    writeFileSync(path, `${lines.join("\n")}\n`);
    await run(["import", path, "--key", "agent:main:old", ...store("files")]);
    const { stdout } = await runHere(directory.path, [
      "export",
      "agent:main:old",
      "--to",
      "openclaw",
      ...store("files"),
    ]);
    const [, first, unknown, second] = stdout.trimEnd().split("\n");
    expect(unknown).toBe(lines[2]);
    const { id } = JSON.parse(first ?? "") as { id: string };
    expect(JSON.parse(second ?? "")).toMatchObject({ parentId: id, message: { content: "two" } });
  });
});
