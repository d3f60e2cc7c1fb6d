import { appendFileSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { redactRecords, type SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import type { NeutralMessage } from "@throughline/history/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { ExportFormat, ExportRemark } from "../src/export-types.ts";
import { exportSession, importPaths } from "@throughline/transfer";
import { exportToFile } from "../src/export-files.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, importAll, jsonLines, recordsOf, refOf } from "./fixture-folder.ts";
import type { FixtureFolder } from "./fixture-folder.ts";

const id = "5e551011-0000-4000-8000-000000000001";
const [u1, a1, r1, a2] = ["1", "2", "3", "4"].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`);
const project = ".claude/projects/-home-u-project";

function line(uuid: string | undefined, parentUuid: string | null | undefined, fields: object): object {
  const place = { parentUuid, isSidechain: false, userType: "external", cwd: "/home/u/project", sessionId: id };
  return { ...place, version: "2.1.132", gitBranch: "", ...fields, uuid, timestamp: "2026-05-07T18:25:10.095Z" };
}

function reply(uuid: string | undefined, parentUuid: string | undefined, messageId: string, block: object): object {
  const usage = { input_tokens: 3, cache_read_input_tokens: 7, output_tokens: 20 };
  const message = {
    model: "claude-opus-4-7",
    id: messageId,
    type: "message",
    role: "assistant",
    content: [block],
    usage,
  };
  return line(uuid, parentUuid, { type: "assistant", message: { ...message, stop_reason: null } });
}

const call = { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "a.txt" } };
const conversation: readonly object[] = [
  { type: "queue-operation", operation: "enqueue", timestamp: "2026-05-07T18:25:10.095Z", sessionId: id },
  line(u1, null, { type: "user", message: { role: "user", content: "What is in a.txt?\u2028" } }),
  reply(a1, u1, "msg_1", call),
  line(r1, a1, {
    type: "user",
    message: { role: "user", content: [{ tool_use_id: "toolu_1", type: "tool_result", content: "hello" }] },
    toolUseResult: { file: { content: "hello" } },
  }),
  { type: "ai-title", aiTitle: "A file", sessionId: id },
  reply(a2, r1, "msg_2", { type: "text", text: "It says hello." }),
  { type: "novelty", of: [1, { "\u0000": null }] },
];
const text = jsonLines(...conversation);

function sessionFolder(content: string | Uint8Array = text): FixtureFolder {
  return fixtureFolder({ [`${project}/${id}.jsonl`]: content });
}

const stores: readonly (readonly [string, (folder: FixtureFolder) => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["jsonl", (folder) => createJsonlStore({ root: folder.at("store"), create: true })],
  ["sqlite", (folder) => createSqliteStore({ path: folder.at("store.db"), create: true })],
];

async function contextOf(store: SessionStore, key: string): Promise<readonly NeutralMessage[]> {
  const ref = { namespace: "", agentId: "main", key };
  const state = await store.load(ref);
  const records = await recordsOf(store, ref);
  return buildContext(records, { headId: state?.head.headId ?? null }).messages;
}

/** The words of a context: what two programs must agree on. */
function said(messages: readonly NeutralMessage[]): readonly unknown[] {
  const found: { readonly role: string; readonly content: unknown[] }[] = [];
  for (const { role, content } of messages) {
    const last = found.at(-1);
    // The parts of a reply may be messages of their own.
    if (role === "assistant" && last?.role === role) last.content.push(...content.map(plainImage));
    else found.push({ role, content: content.map(plainImage) });
  }
  return found;
}

/** An image has two forms, which say the same. */
function plainImage(block: NeutralMessage["content"][number]): unknown {
  if (block.type !== "image") return block;
  const { data, mimeType, source } = block;
  return { type: "image", data: data ?? source?.["data"], mimeType: mimeType ?? source?.["media_type"] };
}

describe("lines of another program", () => {
  it.each(stores)("come in whole and go out byte for byte, and nothing beside them changes: %s", async (_, create) => {
    using folder = sessionFolder();
    await using store = create(folder);
    const path = folder.at(project, `${id}.jsonl`);
    const before = readFileSync(path);
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({
      format: "claude-code",
      state: "imported",
      sessionId: id,
      lines: 7,
      records: 7,
      lost: [],
    });
    expect(source?.key).toBe(`agent:main:import:direct:${id}`);
    const ref = refOf(source as NonNullable<typeof source>);
    expect(await exported(store, ref, "claude-code")).toBe(before.toString("latin1"));
    expect(readFileSync(path)).toEqual(before);
    expect((await importAll(store, path))[0]).toMatchObject({ state: "unchanged", records: 0 });
    expect((await store.load(ref))?.entry).toMatchObject({
      title: "A file",
      titleBy: "import",
      cwd: "/home/u/project",
    });
    expect((await contextOf(store, ref.key)).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "assistant",
    ]);
  });

  it.each(stores)("of a file that grew are those that are new: %s", async (_, create) => {
    using folder = fixtureFolder();
    await using store = create(folder);
    const lines = conversation.map((one) => `${JSON.stringify(one)}\n`);
    const path = folder.write(`${project}/${id}.jsonl`, lines.slice(0, 3).join(""));
    const [first] = await importAll(store, path);
    const ref = refOf(first as NonNullable<typeof first>);
    for (const [index, one] of lines.slice(3).entries()) {
      // The program is in the middle of a line, and then it is not.
      appendFileSync(path, one.slice(0, 20));
      expect((await importAll(store, path))[0]).toMatchObject({ state: "grown", records: 1 });
      expect(await exported(store, ref, "claude-code")).toBe(readFileSync(path, "latin1"));
      appendFileSync(path, one.slice(20));
      const [grown] = await importAll(store, path);
      expect(grown, String(index)).toMatchObject({ state: "grown", lost: [], error: null });
      expect(await exported(store, ref, "claude-code")).toBe(readFileSync(path, "latin1"));
    }
    expect((await contextOf(store, ref.key)).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "assistant",
    ]);
    expect((await store.load(ref))?.entry["title"]).toBe("A file");
  });

  it.each([
    ["carriage returns", text.replaceAll("\n", "\r\n")],
    ["a byte order mark", `\uFEFF${text}`],
    ["NULs of a crash", text.replace("\n", `\n${"\0".repeat(300)}\n`)],
    ["no line feed at the end", text.slice(0, -1)],
    ["a torn end", text.slice(0, -9)],
    ["half characters", text.replace("hello", "\\ud800 hello \\udc00")],
    ["bytes that are no UTF-8", Buffer.from(text, "utf8").fill(0xff, 200, 203)],
    ["blank lines and broken ones", text.replaceAll("\n", '\n\n{"x":\n[1]\n"y"\n')],
    ["every line twice", text.replaceAll(/^.*\n/gm, "$&$&")],
    ["escapes for a terminal", text.replace("hello", "\\u001b]0;x\\u0007\\u001b[2J")],
    ["a field of a prototype", `${text}{"__proto__":{"polluted":1},"type":"__proto__","uuid":"__proto__"}\n`],
  ])("are kept whatever is odd about them: %s", async (_, content) => {
    using folder = sessionFolder(content);
    await using store = createJsonlStore({ root: folder.at("store"), create: true });
    const path = folder.at(project, `${id}.jsonl`);
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ state: "imported", lost: [], error: null });
    expect(source?.lines).toBe(source?.records);
    const ref = refOf(source as NonNullable<typeof source>);
    expect(await exported(store, ref, "claude-code")).toBe(readFileSync(path, "latin1"));
    expect((await importAll(store, path))[0]?.state).toBe("unchanged");
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("too long for the store are reported with their length, the others stored", { tags: ["slow"] }, async () => {
    const long = JSON.stringify(
      line("x", a2, { type: "user", message: { role: "user", content: "x".repeat(17 * 2 ** 20) } }),
    );
    using folder = sessionFolder(`${text}${long}\n${JSON.stringify({ type: "tag", tag: "end" })}\n`);
    await using store = createSqliteStore({ path: folder.at("store.db"), create: true });
    const [source] = await importAll(store, folder.at(project, `${id}.jsonl`));
    expect(source).toMatchObject({
      lines: 9,
      records: 8,
      lost: [{ line: 8, bytes: long.length, reason: "too-long" }],
    });
  });

  it("of a session that was gone on with here are followed by what was said, in the program's own form", async () => {
    using folder = sessionFolder();
    await using store = createJsonlStore({ root: folder.at("store"), create: true });
    const path = folder.at(project, `${id}.jsonl`);
    const [source] = await importAll(store, path);
    const ref = refOf(source as NonNullable<typeof source>);
    await store.append(ref, [{ type: "message", message: { role: "user", content: "And b.txt?" } }]);
    const written = await exported(store, ref, "claude-code");
    expect(written.startsWith(readFileSync(path, "latin1"))).toBe(true);
    const [added] = written
      .slice(Buffer.byteLength(text))
      .trimEnd()
      .split("\n")
      .map((one) => JSON.parse(one) as Record<string, unknown>);
    expect(added).toMatchObject({ type: "user", parentUuid: a2, sessionId: id, message: { content: "And b.txt?" } });
    const copy = folder.write("copy.jsonl", Buffer.from(written, "latin1"));
    const [again] = await importAll(store, copy, { key: "agent:main:import:direct:again" });
    expect(said(await contextOf(store, String(again?.key)))).toEqual(said(await contextOf(store, ref.key)));
  });

  it("of which one was redacted are exported without it", async () => {
    using folder = sessionFolder();
    await using store = createJsonlStore({ root: folder.at("store"), create: true });
    const [source] = await importAll(store, folder.at(project, `${id}.jsonl`));
    const ref = refOf(source as NonNullable<typeof source>);
    await redactRecords(store, ref, [String(r1)], { reason: "secret" });
    const remarks: ExportRemark[] = [];
    const options = { to: "claude-code" as const, onRemark: (remark: ExportRemark): void => void remarks.push(remark) };
    const bytes = Buffer.concat(await Array.fromAsync(exportSession(store, ref, options)));
    expect(bytes.toString()).not.toContain('hello"');
    expect(remarks).toContainEqual(expect.objectContaining({ what: "left-out", kind: "redacted message" }));
  });
});

describe("the folder of another program", () => {
  const agent = `${project}/${id}/subagents/agent-ab12.jsonl`;
  const agentText = jsonLines({
    ...line(u1, null, { type: "user", message: { role: "user", content: "Search." } }),
    isSidechain: true,
    agentId: "ab12",
  });
  const secret = ".claude/.credentials.json";

  it.each([".claude", ".claude/projects", project])("gives its sessions and opens nothing else: %s", async (at) => {
    using folder = fixtureFolder({
      [`${project}/${id}.jsonl`]: text,
      [agent]: agentText,
      [agent.replace("jsonl", "meta.json")]: '{"agentType":"Explore","description":"Search it","toolUseId":"toolu_1"}',
      [`${project}/notes.md`]: "no transcript",
      ".claude/agents/helper.md": "an agent's prompt",
      ".claude/history.jsonl": '{"display":"x","timestamp":1}\n',
      [secret]: '{"token":"x"}',
    });
    const longAgo = new Date(1000);
    for (const name of [secret, ".claude/history.jsonl", `${project}/${id}.jsonl`])
      utimesSync(folder.at(name), longAgo, longAgo);
    await using store = createMemoryStore();
    const sources = await Array.fromAsync(importPaths(store, [folder.at(at)]));
    const parent = `agent:main:import:direct:${id}`;
    expect(sources.map(({ key, state }) => [key, state])).toEqual([
      [parent, "imported"],
      [`${parent}.agent-ab12`, "imported"],
    ]);
    const child = await store.load({ namespace: "", agentId: "main", key: `${parent}.agent-ab12` });
    expect(child?.entry).toMatchObject({
      spawnedBy: parent,
      spawnDepth: 1,
      title: "Search it",
      displayName: "Explore",
    });
    // Where the file system keeps the time of the last reading, the transcript shows that it was read.
    const readAt = (name: string): number => statSync(folder.at(name)).atimeMs;
    if (readAt(`${project}/${id}.jsonl`) > 1000)
      expect([readAt(secret), readAt(".claude/history.jsonl")]).toEqual([1000, 1000]);
    expect((await Array.fromAsync(importPaths(store, [folder.at(at)]))).map(({ state }) => state)).toEqual([
      "unchanged",
      "unchanged",
    ]);
  });

  it.each([".codex", ".codex/sessions", ".codex/sessions/2026/05"])(
    "of Codex gives them with their names: %s",
    async (at) => {
      const name = `rollout-2026-05-07T18-27-42-${id}.jsonl`;
      using folder = fixtureFolder({
        [`.codex/sessions/2026/05/07/${name}`]: jsonLines({
          timestamp: "2026-05-07T18:27:42.128Z",
          type: "session_meta",
          payload: { id, cwd: "/w" },
        }),
        ".codex/session_index.jsonl": jsonLines({ id, thread_name: "old" }, { id, thread_name: "Files" }),
        ".codex/auth.json": "{}",
        ".codex/history.jsonl": jsonLines({ session_id: id, ts: 1, text: "x" }),
      });
      await using store = createMemoryStore();
      const sources = await Array.fromAsync(importPaths(store, [folder.at(at)]));
      expect(sources.map(({ format, sessionId, state }) => [format, sessionId, state])).toEqual([
        ["codex", id, "imported"],
      ]);
      const key = `agent:main:import:direct:${id}`;
      expect((await store.load({ namespace: "", agentId: "main", key }))?.entry).toMatchObject({
        label: "Files",
        cwd: "/w",
      });
    },
  );

  it("is another program's where one was asked for", async () => {
    using folder = sessionFolder();
    await using store = createMemoryStore();
    const path = folder.at(project, `${id}.jsonl`);
    const [refused] = await importAll(store, path, { from: "pi" });
    expect(refused?.error).toMatchObject({
      code: "FORMAT_UNKNOWN",
      message: expect.stringContaining("of Claude Code, not of pi"),
    });
    expect((await importAll(store, path, { from: "claude-code" }))[0]?.state).toBe("imported");
    writeFileSync(
      folder.at("pi.jsonl"),
      jsonLines({ type: "session", version: 3, id: "a", timestamp: "2026-02-01T16:10:50.414Z", cwd: "/" }),
    );
    const [other] = await importAll(store, folder.at("pi.jsonl"), { from: "claude-code" });
    expect(other?.error?.code).toBe("INPUT_INVALID");
  });
});

describe("a session from elsewhere in another program's form", () => {
  it.each(["claude-code", "codex"] as const satisfies readonly ExportFormat[])(
    "says the same when it is imported again: %s",
    async (to) => {
      using folder = fixtureFolder();
      await using store = createMemoryStore();
      const ref = { namespace: "", agentId: "main", key: "agent:main:main" };
      await store.save(ref, { sessionId: "plain", label: "Files", cwd: "/w" }, { ifRevision: null });
      const model = { provider: "anthropic", model: "claude-opus-4-7", api: "anthropic-messages" };
      const drafts = [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
          ],
        },
        {
          role: "assistant",
          ...model,
          content: [
            { type: "text", text: "Two looks." },
            { type: "toolCall", id: "t1", name: "read", arguments: { path: "a" } },
            { type: "toolCall", id: "t2", name: "read", arguments: {} },
          ],
          usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 },
          stopReason: "toolUse",
        },
        { role: "toolResult", toolCallId: "t2", toolName: "read", content: "no", isError: true },
        {
          role: "toolResult",
          toolCallId: "t1",
          toolName: "read",
          content: [{ type: "text", text: "yes" }],
          isError: false,
        },
        { role: "assistant", ...model, content: [{ type: "text", text: "So." }], stopReason: "stop" },
        { role: "user", content: "On." },
      ];
      await store.append(
        ref,
        drafts.map((message) => ({ type: "message", message })),
      );
      const path = folder.at("out.jsonl");
      const { remarks } = await exportToFile(store, ref, path, { to });
      const leftOut = remarks.filter(({ what }) => what === "left-out").map(({ kind }) => kind);
      expect(leftOut).toEqual(to === "codex" ? ["name of the session"] : []);
      const [again] = await importAll(store, path, { key: "agent:main:import:direct:again" });
      expect(again).toMatchObject({ format: to, lost: [], repaired: 0 });
      expect(said(await contextOf(store, String(again?.key)))).toEqual(said(await contextOf(store, ref.key)));
      if (to === "claude-code")
        expect((await store.load({ ...ref, key: String(again?.key) }))?.entry["label"]).toBe("Files");
      expect((await exportToFile(store, ref, folder.at("again.jsonl"), { to })).sizeBytes).toBe(statSync(path).size);
    },
  );
});

describe("files that a program has begun", () => {
  it("make no session and no failure before somebody said something", async () => {
    const begun = { sessionId: "f74ed4b6-0000-4000-8000-000000000012", projectHash: "ab", startTime: "", kind: "main" };
    const folder = ".gemini/tmp/ab/chats/session-2026-06-22T13-4";
    using files = fixtureFolder({
      [`${folder}6-a.jsonl`]: jsonLines(begun, { id: "1", type: "user", content: "Hi" }),
      [`${folder}7-b.jsonl`]: jsonLines(begun),
      [`${folder}8-c.jsonl`]: "",
      [`${folder}9-d.jsonl`]: '{"sessionId":"1111',
    });
    await using store = createMemoryStore();
    const sources = await importAll(store, files.at(".gemini"));
    expect(sources.map(({ state, error }) => [state, error])).toEqual([
      ["imported", null],
      ["skipped", null],
      ["skipped", null],
      ["skipped", null],
    ]);
    files.write(`${folder}7-b.jsonl`, jsonLines(begun, { id: "9", type: "user", content: "Later" }));
    expect((await importAll(store, files.at(".gemini"))).map(({ state }) => state)).toEqual([
      "unchanged",
      "imported",
      "skipped",
      "skipped",
    ]);
  });
});
