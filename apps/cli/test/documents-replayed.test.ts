import { afterAll, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import { contextOf, importLines, recordsOf, replay } from "./replay.ts";

const directory = temporaryDirectory();
const home = directory.path;
afterAll(() => directory.remove());

const text = (value: string): object => ({ type: "text", text: value });
const flat = (type: string, fields: object, ts: number): object => ({ type, ...fields, ts: 1735689600 + ts });

// The four lines of the first document, with the call in the assistant's content too, as its program writes it.
const firstDocument = [
  flat("user", { content: "Hello" }, 1.5),
  flat(
    "assistant",
    { content: [text("Hi!"), { type: "tool_use", id: "toolu_1", name: "read_file", input: { path: "x" } }] },
    2,
  ),
  flat("tool_use", { tool_use_id: "toolu_1", name: "read_file", input: { path: "x" } }, 2),
  flat("tool_result", { tool_use_id: "toolu_1", content: "file contents" }, 3),
];

// The five lines of the second.
const secondDocument = [
  { type: "session", id: "abc123", key: "main:cli:user", created: "2025-01-01T00:00:00Z" },
  { type: "user", content: "hello", ts: "2025-01-01T00:00:01Z" },
  { type: "assistant", content: "Hi there!", ts: "2025-01-01T00:00:02Z" },
  {
    type: "tool_use",
    name: "read_file",
    tool_use_id: "tu_001",
    input: { path: "config.json" },
    ts: "2025-01-01T00:00:03Z",
  },
  { type: "tool_result", tool_use_id: "tu_001", output: '{"key": "value"}', ts: "2025-01-01T00:00:04Z" },
];

describe("the flat records of the documents", () => {
  it("of the first are read and replayed, its double call once", async () => {
    const { messages, repairs } = await replay(home, "first", firstDocument);
    expect(messages).toEqual([
      { role: "user", content: [text("Hello")] },
      {
        role: "assistant",
        content: [text("Hi!"), { type: "tool_use", id: "toolu_1", name: "read_file", input: { path: "x" } }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [text("file contents")] }] },
    ]);
    expect(repairs.map(({ rule }) => rule)).toEqual(["duplicate-call"]);
  });

  it("of the second are read under the key of their header", async () => {
    const { key, sessionId } = await importLines(home, "second", secondDocument);
    expect([key, sessionId]).toEqual(["main:cli:user", "abc123"]);
    const { messages } = await contextOf(home, key, "anthropic");
    expect(messages).toEqual([
      { role: "user", content: [text("hello")] },
      {
        role: "assistant",
        content: [
          text("Hi there!"),
          { type: "tool_use", id: "tu_001", name: "read_file", input: { path: "config.json" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "tu_001", content: [text('{"key": "value"}')] }] },
    ]);
  });

  it("keep their times, whatever unit they are in, as ISO with milliseconds [C08] [C09] [C11]", async () => {
    const times = [1735689601.5, 1735689601500, "2025-01-01T00:00:01.5Z"];
    const { key } = await importLines(
      home,
      "times",
      times.map((ts, index) => ({ type: "user", content: `n${index}`, ts })),
    );
    const records = await recordsOf(home, key);
    expect(records.map(({ timestamp }) => timestamp)).toEqual(times.map(() => "2025-01-01T00:00:01.500Z"));
    const both = [
      ...secondDocument.slice(1, 4),
      { type: "tool_result", tool_use_id: "tu_001", content: "c", output: "o" },
    ];
    const { messages } = await replay(home, "both-bodies", both);
    expect(messages.at(-1)?.["content"]).toMatchObject([{ content: [text("c")] }]);
  });

  it("of the fifth are read under its header, beside wrapped ones [C07]", async () => {
    const { messages } = await replay(home, "fifth", [
      { type: "session", version: 3, id: "u-1", timestamp: "2025-01-15T12:00:00Z", cwd: "/path" },
      { type: "user", content: [text("Hello")], timestamp: 1234567890000 },
      { type: "assistant", content: [text("Hi!")], timestamp: 1234567891000 },
      {
        type: "message",
        id: "m3",
        parentId: null,
        timestamp: "2025-01-15T12:00:02.000Z",
        message: { role: "user", content: "wrapped" },
      },
    ]);
    expect(messages.map(({ content }) => JSON.stringify(content))).toContain(JSON.stringify([text("wrapped")]));
  });

  it("give no message for headers, and answer a call that is open at the end", async () => {
    const calls = [1, 2].map((n) => flat("tool_use", { tool_use_id: `c${n}`, name: "ls", input: {} }, n));
    const { messages, repairs } = await replay(home, "open-calls", [
      secondDocument[0],
      ...secondDocument.slice(1, 3),
      ...calls,
    ]);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(messages[1]?.["content"]).toMatchObject([text("Hi there!"), { id: "c1" }, { id: "c2" }]);
    expect(messages[2]?.["content"]).toMatchObject([
      { type: "tool_result", tool_use_id: "c1", is_error: true },
      { type: "tool_result", tool_use_id: "c2", is_error: true },
    ]);
    expect(repairs.filter(({ rule }) => rule === "result-synthesized")).toHaveLength(2);
  });

  it("keep an id of 12 hex digits [C04]", async () => {
    const id = "0123456789ab";
    const lines = [{ ...secondDocument[0], id, key: "main:cli:hex" }, secondDocument[1]];
    expect(await importLines(home, "hex", lines)).toMatchObject({ sessionId: id, key: "main:cli:hex" });
  });
});

/** A wrapped record of version 3. */
function record(id: string, parentId: string | null, message: object): object {
  return { type: "message", id, parentId, timestamp: "2026-01-01T00:00:00.000Z", message };
}

const header = { type: "session", version: 3, id: "v3", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/w" };
const userOf = (content: unknown): object => ({ role: "user", content });
const callOf = (id: string): object => ({ type: "toolCall", id, name: "ls", arguments: {} });
const assistantOf = (...content: readonly object[]): object => ({ role: "assistant", content, stopReason: "stop" });
const resultOf = (id: string, value: string = `r-${id}`): object => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "ls",
  content: [text(value)],
  isError: false,
});

/** A line of records, each the child of the one before. */
function chain(...messages: readonly object[]): object[] {
  return [
    header,
    ...messages.map((message, index) => record(`m${index}`, index === 0 ? null : `m${index - 1}`, message)),
  ];
}

/** Roles with the ids of calls (+) and results (-). */
function outline(messages: readonly Readonly<Record<string, unknown>>[]): string[] {
  return messages.map(({ role, content }) => {
    const blocks = content as readonly Record<string, unknown>[];
    const ids = blocks.flatMap(({ type, id, tool_use_id: answered }) =>
      type === "tool_use" ? [`+${String(id)}`] : type === "tool_result" ? [`-${String(answered)}`] : [],
    );
    return [String(role), ...ids].join(" ");
  });
}

describe("a history that is replayed", () => {
  it("keeps words and joins results of parallel calls", async () => {
    const { messages } = await replay(
      home,
      "parallel",
      chain(userOf("q ä"), assistantOf(callOf("a"), callOf("b")), resultOf("a"), resultOf("b")),
    );
    expect(outline(messages)).toEqual(["user", "assistant +a +b", "user -a -b"]);
    expect(messages[0]?.["content"]).toEqual([text("q ä")]);
    // As the program of the first document writes parallel calls.
    const used = (id: string): object => ({ type: "tool_use", id, name: "ls", input: {} });
    const interleaved = [
      flat("user", { content: "q" }, 0),
      flat("assistant", { content: [used("a"), used("b")] }, 1),
      flat("tool_use", { tool_use_id: "a", name: "ls", input: {} }, 1),
      flat("tool_result", { tool_use_id: "a", content: "1" }, 2),
      flat("tool_use", { tool_use_id: "b", name: "ls", input: {} }, 3),
      flat("tool_result", { tool_use_id: "b", content: "2" }, 4),
    ];
    const { messages: joined } = await replay(home, "interleaved", interleaved);
    expect(outline(joined)).toEqual(["user", "assistant +a +b", "user -a -b"]);
  });

  it("puts results behind their calls, drops orphans and doubles, and says so [C58]", async () => {
    const { messages, repairs } = await replay(
      home,
      "odd-results",
      chain(userOf("q"), resultOf("a"), assistantOf(callOf("a")), resultOf("a"), resultOf("orphan"), userOf("next")),
    );
    const seen = outline(messages);
    expect(seen.filter((line) => line.includes("+a"))).toEqual(["assistant +a"]);
    expect(seen.filter((line) => line.includes("-a"))).toHaveLength(1);
    expect(seen.indexOf("assistant +a") + 1).toBe(seen.findIndex((line) => line.startsWith("user -a")));
    expect(JSON.stringify(messages)).not.toContain('"tool_use_id":"orphan"');
    expect(repairs.length).toBeGreaterThan(1);
  });

  it("starts with the summary of the newest compaction, by position and not by id [C12] [C29]", async () => {
    const lines = [
      header,
      record("zzz", null, userOf("old")),
      record("yyy", "zzz", assistantOf(text("old answer"))),
      record("aaa", "yyy", userOf("kept")),
      {
        type: "compaction",
        id: "bbb",
        parentId: "aaa",
        timestamp: "2026-01-01T00:00:01.000Z",
        summary: "SUMMARY",
        firstKeptEntryId: "aaa",
        tokensBefore: 9,
      },
      record("ccc", "bbb", assistantOf(text("new answer"))),
    ];
    const texts = JSON.stringify((await replay(home, "compacted", lines)).messages);
    expect(texts.indexOf("SUMMARY")).toBeGreaterThan(-1);
    expect(texts.indexOf("SUMMARY")).toBeLessThan(texts.indexOf("kept"));
    expect(texts.indexOf("kept")).toBeLessThan(texts.indexOf("new answer"));
    expect(texts).not.toContain("old answer");
  });

  it("follows parents from the leaf, through cycles and ids that occur twice", async () => {
    const branch = [
      header,
      record("a", null, userOf("root")),
      record("b", "a", assistantOf(text("left"))),
      record("c", "a", assistantOf(text("right"))),
      record("d", "c", userOf("leaf")),
    ];
    const texts = JSON.stringify((await replay(home, "branches", branch)).messages);
    expect(texts).toContain("right");
    expect(texts).not.toContain("left");
    const cycle = [
      header,
      record("a", "c", userOf("one")),
      record("b", "a", assistantOf(text("two"))),
      record("c", "b", userOf("three")),
    ];
    expect((await replay(home, "cycle", cycle)).messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
  });

  it("alternates, begins with the user, has no empty text and only ids that providers take", async () => {
    const lines = chain(
      assistantOf(text("first"), text("   ")),
      userOf("a"),
      userOf("b"),
      assistantOf(callOf("odd id:1|2"), text("")),
      resultOf("odd id:1|2"),
    );
    for (const provider of ["anthropic", "bedrock"]) {
      const { messages } = await replay(home, `alternating-${provider}`, lines, provider);
      const roles = messages.map(({ role }) => role);
      expect(roles[0]).toBe("user");
      expect(roles.every((role, index) => index === 0 || role !== roles[index - 1])).toBe(true);
      expect(JSON.stringify(messages)).not.toMatch(/"text":" *"/);
      for (const [, id = ""] of JSON.stringify(messages).matchAll(/"(?:id|tool_use_id|toolUseId)":"([^"]*)"/g))
        expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
    }
  });

  it("carries images in both shapes, and a marker where a target takes none", async () => {
    const pixel = "iVBORw0KGgo=";
    const lines = chain(
      userOf([{ type: "image", data: pixel, mimeType: "image/png" }]),
      assistantOf(text("seen")),
      userOf([{ type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }]),
    );
    const { messages } = await replay(home, "images", lines);
    expect(JSON.stringify(messages).split(pixel)).toHaveLength(3);
    expect(messages[0]?.["content"]).toEqual([
      { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
    ]);
    const asText = JSON.stringify((await replay(home, "images-as-text", lines, "text")).messages);
    expect(asText).not.toContain(pixel);
    expect(asText).toMatch(/image/i);
  });
});

describe("records of other kinds", () => {
  it("are kept as they were, and exported as they were", async () => {
    const usage = { input: 100, output: 50, cacheRead: 800, cacheWrite: 50, totalTokens: 1000, cost: { total: 0.5 } };
    const lines = [
      header,
      record("a", null, userOf("q")),
      record("b", "a", { ...assistantOf(text("x")), api: "anthropic-messages", provider: "p", model: "m", usage }),
      {
        type: "custom",
        id: "c",
        parentId: "b",
        timestamp: "2026-01-01T00:00:00.000Z",
        customType: "mine",
        data: { deep: [1] },
      },
      {
        type: "checkpoint",
        id: "d",
        parentId: "c",
        timestamp: "2026-01-01T00:00:00.000Z",
        checkpoint: {
          summary: "S",
          tokensAtCheckpoint: 5,
          messageCountAtCheckpoint: 2,
          topics: ["t"],
          openQuestions: [],
          keyDecisions: [],
        },
      },
      record("e", "c", userOf("after")),
    ];
    const { key } = await importLines(home, "kinds", lines, "agent:main:test:direct:kinds");
    const records = await recordsOf(home, key, "--all-branches");
    expect(records.find(({ id }) => id === "c")).toEqual(lines[3]);
    expect(records.find(({ id }) => id === "d")).toEqual(lines[4]);
    expect(records.find(({ id }) => id === "b")?.["message"]).toMatchObject({ usage });
    const { messages, headId } = await contextOf(home, key, "anthropic");
    expect([headId, messages.length]).toEqual(["e", 3]);
    const { stdout } = await runHere(home, ["export", key, "--to", "openclaw"]);
    expect(stdout).toBe(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  });

  it("name the model and the thinking level from there on", { tags: ["slow"] }, async () => {
    const lines = [
      header,
      record("a", null, userOf("q")),
      {
        type: "model_change",
        id: "b",
        parentId: "a",
        timestamp: "2026-01-01T00:00:00.000Z",
        provider: "openai",
        modelId: "gpt-x",
      },
      record("c", "b", userOf("r")),
    ];
    expect(await replay(home, "model-change", lines)).toMatchObject({ model: "openai/gpt-x" });
  });
});

describe("keys", () => {
  const keys = [
    "goclaw:main:main",
    "agent:main:discord:group:123",
    "agent:main:subagent:worker1:task123",
    "agent:main:slack:channel:C:1",
    "agent:main:telegram:direct:77:thread:9",
  ];

  it("of every documented form are kept byte for byte and found by it [C01]", async () => {
    for (const [index, key] of keys.entries()) {
      await importLines(home, `key-${index}`, [{ ...header, id: `k${index}` }, record("a", null, userOf(key))], key);
      const { stdout } = await runHere(home, ["show", key, "--raw", "--json"]);
      expect([key, objects(stdout)[0]?.["record"]]).toMatchObject([key, { message: { content: key } }]);
    }
    const { stdout } = await runHere(home, ["sessions", "--json", "--limit", "100"]);
    expect(objects(stdout).map(({ key }) => key)).toEqual(expect.arrayContaining(keys));
  });

  it("with dm are found as direct, and stay as they are stored [C02]", async () => {
    const key = "agent:main:discord:dm:user123";
    await importLines(home, "dm", [{ ...header, id: "dm1" }, record("a", null, userOf("q"))], key);
    const { stdout } = await runHere(home, ["sessions", "--json", "--limit", "100"]);
    expect(objects(stdout).map((row) => row["key"])).toContain(key);
    const { key: found } = await contextOf(home, "agent:main:discord:direct:user123", "anthropic");
    expect(found).toBe(key);
  });

  it("are refused where the short form names agent as its agent", async () => {
    const { code, stderr } = await runHere(home, ["append", "agent:cli", "--json"], { stdin: '{"type":"x"}\n' });
    expect(code).not.toBe(0);
    expect(objects(stderr)[0]).toMatchObject({ kind: "error" });
  });

  it("that we make have ids that are random UUIDs, and may carry a label", async () => {
    const { stdout } = await runHere(home, ["new", "my-project", "--json"]);
    const [session] = objects(stdout);
    expect(session).toMatchObject({ label: "my-project" });
    expect(session?.["sessionId"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
