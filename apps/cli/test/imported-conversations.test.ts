import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const key = "agent:main:import:direct:a";
type Fields = Readonly<Record<string, unknown>>;

async function json(args: readonly string[], code = 0): Promise<readonly Fields[]> {
  const run = await runHere(directory.path, [...args, "--json", "--quiet"]);
  expect([args[0], run.code, run.code === code ? "" : run.stderr]).toEqual([args[0], code, ""]);
  return objects(run.stdout);
}

interface Imported {
  /** What Anthropic would be sent, each block in short. */
  readonly messages: readonly string[];
  readonly repairs: readonly unknown[];
  readonly records: readonly Fields[];
}

/** Imports a file of these lines, shows what would be sent of it, and checks that it is exported byte for byte. */
async function imported(lines: readonly (Fields | string)[], code = 0): Promise<Imported> {
  const path = join(directory.path, "a.jsonl");
  writeFileSync(path, lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""));
  await json(["import", path, "--key", key], code);
  const [context] = await json(["context", key, "--provider", "anthropic"]);
  const shown = await json(["show", key, "--all-branches"]);
  const exported = await runHere(directory.path, ["export", key]);
  expect(exported.stdout).toBe(readFileSync(path, "utf8"));
  const messages = (context?.["messages"] ?? []) as readonly { role: string; content: readonly Fields[] }[];
  return {
    messages: messages.map(({ role, content }) => `${role}: ${content.map(inShort).join(" ")}`),
    repairs: ((context?.["repairs"] ?? []) as readonly { rule: string }[]).map(({ rule }) => rule),
    records: shown.flatMap(({ record }) => (record === undefined ? [] : [record as Fields])),
  };
}

function inShort(block: Fields): string {
  if (block["type"] === "tool_use")
    return `${String(block["name"])}#${String(block["id"])}${JSON.stringify(block["input"])}`;
  if (block["type"] === "tool_result") {
    const text = ((block["content"] ?? []) as readonly Fields[]).map((part) => part["text"]).join("");
    return `=${String(block["tool_use_id"])}${block["is_error"] === true ? "!" : ""}(${text})`;
  }
  return block["type"] === "text" ? String(block["text"]) : `[${String(block["type"])}]`;
}

const user = (content: unknown): Fields => ({ type: "user", content, ts: 1234567890 });
const assistant = (content: unknown): Fields => ({ type: "assistant", content, ts: 1234567891 });
const call = (id: string, input: Fields = {}): Fields => ({
  type: "tool_use",
  tool_use_id: id,
  name: "read_file",
  input,
});
const result = (id: string, content: string): Fields => ({ type: "tool_result", tool_use_id: id, content });

describe("flat records of claw0", () => {
  it("become the messages its document builds from them", async () => {
    const { messages } = await imported([
      user("Hello"),
      assistant([{ type: "text", text: "Hi!" }]),
      call("toolu_1", { path: "a" }),
      result("toolu_1", "file contents"),
      assistant("Read."),
      user("Thanks"),
    ]);
    expect(messages).toEqual([
      "user: Hello",
      'assistant: Hi! read_file#toolu_1{"path":"a"}',
      "user: =toolu_1(file contents)",
      "assistant: Read.",
      "user: Thanks",
    ]);
  });

  it("of the older form have a header with a key, string content, and results in `output`", async () => {
    const path = join(directory.path, "b.jsonl");
    const header = { type: "session", id: "abc123abc123", key: "main:cli:user", created: "2025-01-01T00:00:00Z" };
    const lines: readonly Fields[] = [
      header,
      { type: "user", content: "hello", ts: "2025-01-01T00:00:01Z" },
      { type: "assistant", content: "Hi there!", ts: "2025-01-01T00:00:02Z" },
      { type: "tool_use", name: "read_file", tool_use_id: "tu_001", input: { path: "c" }, ts: "2025-01-01T00:00:03Z" },
      { type: "tool_result", tool_use_id: "tu_001", output: '{"key": "value"}', ts: "2025-01-01T00:00:04Z" },
    ];
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    await json(["import", path]);
    const [session] = await json(["sessions"]);
    expect(session).toMatchObject({ key: "main:cli:user", sessionId: "abc123abc123", messageCount: 4 });
    expect(session?.["createdAtMs"]).toBe(Date.UTC(2025, 0, 1));
    const [context] = await json(["context", "main:cli:user", "--provider", "anthropic"]);
    const messages = (context?.["messages"] ?? []) as readonly { role: string; content: readonly Fields[] }[];
    expect(messages.map(({ content }) => content.map(inShort).join(" "))).toEqual([
      "hello",
      'Hi there! read_file#tu_001{"path":"c"}',
      '=tu_001({"key": "value"})',
    ]);
  });

  it("of parallel calls become one reply and one answer, also stored in turn or out of order", async () => {
    const wanted = [
      "user: go",
      "assistant: read_file#t1{} read_file#t2{}",
      "user: =t1(one) =t2(two)",
      "assistant: done",
    ];
    const both = ["t1", "t2"].map((id) => ({ type: "tool_use", id, name: "read_file", input: {} }));
    const orders = [
      [call("t1"), call("t2"), result("t1", "one"), result("t2", "two")],
      // Stored in turn; the reply says that they belong together.
      [assistant(both), call("t1"), result("t1", "one"), call("t2"), result("t2", "two")],
    ];
    for (const order of orders) {
      const { messages } = await imported([user("go"), ...order, assistant("done"), user("more")]);
      expect(messages).toEqual([...wanted, "user: more"]);
      directory.remove();
      directory = temporaryDirectory();
    }
    const early = await imported([user("go"), result("t1", "one"), call("t1"), assistant("done"), user("more")]);
    expect(early.messages.join("\n")).toContain("assistant: read_file#t1{}\nuser: =t1(one)");
  });

  it("that break the pairs are repaired, each repair named, and nothing said is lost", async () => {
    const { messages, repairs } = await imported([
      user("go"),
      assistant([
        { type: "text", text: "I look." },
        { type: "tool_use", id: "t1", name: "read_file", input: {} },
      ]),
      call("t1"),
      result("t1", "one"),
      result("nobody", "an orphan"),
      assistant("And on."),
      call("t9"),
    ]);
    expect(messages.slice(0, 2)).toEqual(["user: go", "assistant: I look. read_file#t1{}"]);
    const all = messages.join("\n");
    expect(all.match(/read_file#t1/g)).toHaveLength(1);
    expect(all).toContain("And on. read_file#t9{}");
    expect(all).toMatch(/=t9!\(/);
    expect(repairs.length).toBeGreaterThanOrEqual(3);
    expect(all).not.toContain("=nobody");
  });
});

const header = {
  type: "session",
  version: 3,
  id: "7a0e870d-ac60-4042-85f2-99a6a0ca49fd",
  timestamp: "2026-02-01T12:00:00.000Z",
  cwd: "/work",
};
const at = "2026-02-01T16:10:50.414Z";
const record = (id: string, parentId: string | null, fields: Fields): Fields => ({
  id,
  parentId,
  timestamp: at,
  ...fields,
});
const said = (id: string, parentId: string | null, message: Fields): Fields =>
  record(id, parentId, { type: "message", message });
const usage = { input: 1000, output: 500, cacheRead: 200, cacheWrite: 100, totalTokens: 1800, cost: { total: 0.1 } };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };

describe("records of OpenClaw", () => {
  it("of every documented type are kept with every field, and unknown ones too", { tags: ["slow"] }, async () => {
    const lines = [
      header,
      said("aaaaaaa1", null, { role: "user", content: [{ type: "text", text: "Hi" }], timestamp: 1 }),
      record("aaaaaaa2", "aaaaaaa1", { type: "model_change", provider: "openai", modelId: "gpt-5" }),
      record("aaaaaaa3", "aaaaaaa2", { type: "thinking_level_change", thinkingLevel: "high" }),
      record("aaaaaaa4", "aaaaaaa3", { type: "custom", customType: "ext", data: { a: [1] } }),
      record("aaaaaaa5", "aaaaaaa4", { type: "mystery", deep: { of: [null, "x"] } }),
    ];
    const { records, messages } = await imported(lines);
    for (const line of lines.slice(1)) expect(records).toContainEqual(expect.objectContaining(line));
    expect(messages).toEqual(["user: Hi"]);
    expect((await json(["context", key]))[0]?.["model"]).toBe("openai/gpt-5");
  });

  it("keep what a message says of its model, its usage and its images", async () => {
    const reply = {
      role: "assistant",
      content: [{ type: "text", text: "A dog." }],
      api: "openai-responses",
      provider: "anthropic",
      model: "claude-opus-4.5",
      usage,
      stopReason: "stop",
      timestamp: 2,
    };
    const { records, messages } = await imported([
      header,
      said("aaaaaaa1", null, { role: "user", content: [{ type: "text", text: "What is it?" }, image], timestamp: 1 }),
      said("aaaaaaa2", "aaaaaaa1", reply),
      said("aaaaaaa3", "aaaaaaa2", {
        role: "user",
        content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }],
        timestamp: 3,
      }),
    ]);
    expect(records.map((line) => line["message"])).toContainEqual(reply);
    expect(messages).toEqual(["user: What is it? [image]", "assistant: A dog.", "user: [image]"]);
  });

  it("are followed from the last line by their parents, past other branches, empty blocks and broken lines", async () => {
    const { messages } = await imported(
      [
        header,
        said("aaaaaaa1", null, { role: "user", content: "kept" }),
        said("bbbbbbb1", "aaaaaaa1", { role: "assistant", content: [{ type: "text", text: "another branch" }] }),
        said("aaaaaaa2", "aaaaaaa1", {
          role: "assistant",
          content: [
            { type: "text", text: "" },
            { type: "text", text: "yes" },
          ],
        }),
        "{broken",
        said("aaaaaaa3", "aaaaaaa2", { role: "user", content: "on" }),
      ],
      3,
    );
    expect(messages).toEqual(["user: kept", "assistant: yes", "user: on"]);
  });

  it.each([
    ["a cycle", ["aaaaaaa3", "aaaaaaa1", "aaaaaaa2"]],
    ["a record that is its own parent", [null, "aaaaaaa1", "aaaaaaa3"]],
    ["a parent that is not there", [null, "aaaaaaa1", "gone0000"]],
  ] as const)("with %s end the walk, and the newest message is sent", async (_, parents) => {
    const lines = parents.map((parentId, index) =>
      said(`aaaaaaa${index + 1}`, parentId, { role: "user", content: `message ${index + 1}` }),
    );
    const path = join(directory.path, "a.jsonl");
    writeFileSync(path, [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
    await runHere(directory.path, ["import", path, "--key", key]);
    const [context] = await json(["context", key, "--provider", "anthropic"]);
    expect(JSON.stringify(context?.["messages"])).toContain("message 3");
    expect((await json(["show", key, "--all-branches"])).filter(({ type }) => type === "message")).toHaveLength(3);
  });

  it("of which two have one id are both kept, and no message is sent twice", async () => {
    const path = join(directory.path, "a.jsonl");
    const twice = said("aaaaaaa1", null, { role: "user", content: "once" });
    const last = said("aaaaaaa2", "aaaaaaa1", { role: "assistant", content: [{ type: "text", text: "yes" }] });
    writeFileSync(path, [header, twice, twice, last].map((line) => `${JSON.stringify(line)}\n`).join(""));
    await runHere(directory.path, ["import", path, "--key", key]);
    const [context] = await json(["context", key, "--provider", "anthropic"]);
    expect(JSON.stringify(context?.["messages"]).match(/once/g)).toHaveLength(1);
    expect((await runHere(directory.path, ["export", key])).stdout).toBe(readFileSync(path, "utf8"));
  });

  it("before a compaction are replaced by its summary, to the record it names by its place", async () => {
    const checkpoint = {
      summary: "Half way.",
      tokensAtCheckpoint: 50000,
      messageCountAtCheckpoint: 45,
      topics: ["t"],
      openQuestions: ["q"],
      keyDecisions: ["d"],
    };
    const { messages, records } = await imported([
      header,
      said("ffffffff", null, { role: "user", content: "long ago" }),
      said("00000001", "ffffffff", { role: "assistant", content: [{ type: "text", text: "indeed" }] }),
      record("1706803200000_c1a2", "00000001", { type: "checkpoint", checkpoint }),
      said("99999999", "00000001", { role: "user", content: "kept" }),
      record("1706803200000_0b72", "99999999", {
        type: "compaction",
        summary: "They spoke.",
        firstKeptEntryId: "99999999",
        tokensBefore: 186673,
        fromCheckpoint: true,
      }),
      said("00000002", "1706803200000_0b72", { role: "assistant", content: [{ type: "text", text: "after" }] }),
      said("00000003", "00000002", { role: "user", content: "and now" }),
    ]);
    expect(messages).toEqual([
      "user: [Previous conversation summary]\nThey spoke.",
      "assistant: Understood, I have the context.",
      "user: kept",
      "assistant: after",
      "user: and now",
    ]);
    expect(records.map(({ type }) => type)).toContain("checkpoint");
    expect((await json(["checkpoints", key]))[0]).toMatchObject({
      summary: "Half way.",
      tokensAtCheckpoint: 50000,
      topics: ["t"],
    });
  });
});

describe("keys", () => {
  it("of every documented form make a session and are found again, `dm` by `direct` too", async () => {
    const keys = [
      "main:cli:user",
      "agent:main:main",
      "goclaw:main:main",
      "agent:main:discord:dm:user123",
      "agent:main:discord:group:123",
      "agent:main:telegram:channel:a:b",
      "agent:main:telegram:group:7:thread:9",
      "agent:main:subagent:worker1:task123",
    ];
    for (const one of keys) {
      const drafts = `${JSON.stringify({ type: "message", message: { role: "user", content: one } })}\n`;
      const run = await runHere(directory.path, ["append", one], { stdin: drafts });
      expect([one, run.code, run.stderr]).toEqual([one, 0, ""]);
    }
    const listed = (await json(["sessions"])).flatMap((session) => session["key"] ?? []);
    expect(listed.toSorted()).toEqual(keys.toSorted());
    expect(JSON.stringify(await json(["show", "agent:main:discord:direct:user123"]))).toContain("discord:dm:user123");
    const kinds: Fields = {};
    for (const one of keys) Object.assign(kinds, { [one]: (await json(["policy", one]))[0]?.["chatType"] });
    expect(kinds).toMatchObject({
      "agent:main:discord:dm:user123": "direct",
      "agent:main:discord:group:123": "group",
      "agent:main:telegram:channel:a:b": "channel",
      "agent:main:telegram:group:7:thread:9": "group",
    });
  });

  it("may have a label, and imported ids of twelve digits stay", async () => {
    const folder = join(directory.path, "w/.sessions/agents/main/sessions");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "0123456789ab.jsonl"), `${JSON.stringify(user("hello"))}\n`);
    const index = { "0123456789ab": { label: "my-project", created_at: "2025-01-01T00:00:00Z" } };
    writeFileSync(join(folder, "../sessions.json"), JSON.stringify(index));
    await json(["import", join(directory.path, "w")]);
    await json(["new", "Another one"]);
    const sessions = (await json(["sessions"])).filter(({ kind }) => kind === "session");
    expect(sessions).toContainEqual(expect.objectContaining({ sessionId: "0123456789ab", label: "my-project" }));
    expect(sessions).toContainEqual(
      expect.objectContaining({
        label: "Another one",
        sessionId: expect.stringMatching(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      }),
    );
  });
});
