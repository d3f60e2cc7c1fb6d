import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory, user } from "./harness.ts";
import { contextOf, importLines } from "./replay.ts";

const directory = temporaryDirectory();
const home = directory.path;
afterAll(() => directory.remove());

const stamp = "2026-01-01T00:00:00.000Z";
const header = { type: "session", version: 3, id: "kept", timestamp: stamp, cwd: "/home/ada" };
const message = (id: string, parentId: string | null, fields: object): object => ({
  type: "message",
  id,
  parentId,
  timestamp: stamp,
  message: fields,
});

describe("what is stored in files", () => {
  it("is written wrapped, with the three roles", async () => {
    const store = `jsonl:${join(home, "files")}`;
    const call = { type: "toolCall", id: "c1", name: "ls", arguments: {} };
    const drafts = [
      user("q"),
      { type: "message", message: { role: "assistant", content: [call] } },
      { type: "message", message: { role: "toolResult", toolCallId: "c1", toolName: "ls", content: "r" } },
    ];
    const stdin = drafts.map((draft) => `${JSON.stringify(draft)}\n`).join("");
    expect((await runHere(home, ["append", "agent:main:main", "--store", store], { stdin })).code).toBe(0);
    const folder = join(home, "files/agents/main/sessions");
    const [name = ""] = readdirSync(folder).filter((each) => each.endsWith(".jsonl"));
    const [first, ...lines] = objects(readFileSync(join(folder, name), "utf8"));
    expect(first).toMatchObject({ type: "session", version: 3, key: "agent:main:main" });
    expect(lines.map((line) => Object.keys(line).slice(0, 5))).toEqual(
      drafts.map(() => ["type", "id", "parentId", "timestamp", "message"]),
    );
    expect(lines.map((line) => (line["message"] as { role: string }).role)).toEqual([
      "user",
      "assistant",
      "toolResult",
    ]);
  });

  it("keeps unknown types and fields through import, export and repair, and shows them to no model", async () => {
    const lines = [
      { ...header, extra: { deep: [1, null] } },
      { ...message("a", null, { role: "user", content: "q", mood: "calm" }), more: "😀" },
      { type: "hologram", id: "b", parentId: "a", timestamp: stamp, payload: { "1": "x", nested: [[]] } },
      message("c", "b", { role: "user", content: "r" }),
    ];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const { key } = await importLines(home, "unknown", lines, "agent:main:test:direct:unknown");
    const context = JSON.stringify((await contextOf(home, key, "anthropic")).messages);
    for (const unknown of ["hologram", "payload", "calm", "😀"]) expect(context).not.toContain(unknown);
    expect((await runHere(home, ["export", key, "--to", "openclaw"])).stdout).toBe(text);
    const path = join(home, "broken.jsonl");
    writeFileSync(path, `${text}{"type":"mess`);
    const { stdout, stderr } = await runHere(home, ["doctor", path, "--repair", "--json"]);
    const copies = readdirSync(home).filter((name) => name.startsWith("broken") && name !== "broken.jsonl");
    expect([copies.length, stdout + stderr]).toEqual([1, expect.stringContaining("repaired")]);
    const copy = readFileSync(join(home, copies[0] ?? ""), "utf8");
    for (const line of lines.slice(1)) expect(copy).toContain(JSON.stringify(line));
    expect(readFileSync(path, "utf8")).toBe(`${text}{"type":"mess`);
  });

  it("in an OpenClaw state directory is listed and continued in its own layout", async () => {
    const state = join(home, "openclaw");
    const folder = join(state, "agents/main/sessions");
    mkdirSync(folder, { recursive: true });
    const lines = [header, message("a", null, { role: "user", content: "from OpenClaw" })];
    writeFileSync(join(folder, "kept.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const entry = { sessionId: "kept", updatedAt: 1_767_225_600_000, sessionFile: join(folder, "kept.jsonl") };
    writeFileSync(join(folder, "sessions.json"), JSON.stringify({ "agent:main:main": entry }));
    const there = ["--store", `jsonl:${state}`] as const;
    const [listed] = objects((await runHere(home, ["sessions", "--json", ...there])).stdout);
    expect(listed).toMatchObject({ key: "agent:main:main", sessionId: "kept", messageCount: 1 });
    const stdin = `${JSON.stringify(user("from here"))}\n`;
    expect((await runHere(home, ["append", "agent:main:main", ...there], { stdin })).code).toBe(0);
    const written = objects(readFileSync(join(folder, "kept.jsonl"), "utf8"));
    expect(written.map(({ parentId }) => parentId)).toEqual([undefined, null, "a"]);
    const { stdout } = await runHere(home, ["import", state, "--dry-run", "--json"]);
    expect(objects(stdout)[0]).toMatchObject({ kind: "import" });
  });
});

describe("a session that is named", () => {
  it("is made where it is not there, and continued where it is", async () => {
    const ask = async (text: string): Promise<unknown> => {
      const { stdout } = await runHere(home, [
        "chat",
        "--key",
        "named",
        "--once",
        text,
        "--model",
        "offline",
        "--json",
      ]);
      return objects(stdout).at(-1)?.["sessionId"];
    };
    const first = await ask("hello");
    expect([typeof first, await ask("help")]).toEqual(["string", first]);
    const { stdout } = await runHere(home, ["show", "named", "--raw", "--json", "--role", "user"]);
    expect(objects(stdout).filter(({ kind }) => kind === "record")).toHaveLength(2);
  });

  it("keeps a route with a thread that is a number or a text", async () => {
    for (const threadId of [9, "9"]) {
      const route = { channel: "slack", to: "U1", accountId: "acc", threadId };
      const set = ["entry", "named-route", "set", "deliveryContext", JSON.stringify(route), "--json"];
      await runHere(home, ["append", "named-route"], { stdin: `${JSON.stringify(user("q"))}\n` });
      const [row] = objects((await runHere(home, ["sessions", "--json"])).stdout).filter(({ label, key }) =>
        [label, key].some((name) => String(name).includes("named-route")),
      );
      const [state] = objects((await runHere(home, [set[0] ?? "", String(row?.["key"]), ...set.slice(2)])).stdout);
      expect(state?.["entry"]).toMatchObject({ deliveryContext: route, lastThreadId: threadId, lastChannel: "slack" });
    }
  });
});
