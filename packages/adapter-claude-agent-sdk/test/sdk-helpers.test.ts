import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import {
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  importSessionToStore,
  listSessions,
  listSubagents,
  renameSession,
  type SessionKey,
  tagSession,
} from "@anthropic-ai/claude-agent-sdk";
import { createClaudeSessionStore, type ClaudeSessionStore } from "@throughline/adapter-claude-agent-sdk";
import { createAgentsSession } from "@throughline/adapter-openai-agents";
import { appendOnce, redactRecords, type SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeStores } from "./four-stores.ts";
import { line, prompt, reply, sessionId, turn, uuidAt } from "./transcript.ts";

let folder = "";
const configDir = process.env["CLAUDE_CONFIG_DIR"];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-claude-"));
  process.env["CLAUDE_CONFIG_DIR"] = join(folder, "config");
});
afterEach(() => {
  if (configDir === undefined) delete process.env["CLAUDE_CONFIG_DIR"];
  else process.env["CLAUDE_CONFIG_DIR"] = configDir;
  rmSync(folder, { recursive: true, force: true });
});

/** The key that the SDK makes of a folder: what a store is asked for first. */
async function keyOf(dir: string): Promise<SessionKey> {
  const asked: SessionKey[] = [];
  const store = {
    append: () => Promise.resolve(),
    load: (key: SessionKey) => (asked.push(key), Promise.resolve(null)),
  };
  await getSessionMessages(sessionId, { dir, sessionStore: store });
  return asked[0] as SessionKey;
}

const textsOf = (messages: readonly { readonly message: unknown }[]): string => JSON.stringify(messages);

await describeStores("the SDK's own functions", (open) => {
  it("list, read, rename, tag, fork and delete a mirrored session", async () => {
    const sessionStore = createClaudeSessionStore({ store: open() });
    const dir = folder;
    const key = await keyOf(dir);
    await sessionStore.append(key, [...turn(1, "first question"), ...turn(5, "second question")]);
    await sessionStore.append({ ...key, subpath: "subagents/agent-a1" }, [
      line(51, { isSidechain: true, agentId: "a1", message: { role: "user", content: "look" } }, 51),
      { ...reply(52, [{ type: "text", text: "seen" }], 51), isSidechain: true, agentId: "a1" },
    ]);

    expect(await listSessions({ dir, sessionStore })).toMatchObject([{ sessionId, firstPrompt: "first question" }]);
    await renameSession(sessionId, "Reading a.txt", { dir, sessionStore });
    await tagSession(sessionId, "reading", { dir, sessionStore });
    const info = await getSessionInfo(sessionId, { dir, sessionStore });
    expect(info).toMatchObject({ customTitle: "Reading a.txt", tag: "reading" });
    expect(await listSessions({ dir, sessionStore })).toMatchObject([{ customTitle: "Reading a.txt", tag: "reading" }]);
    expect(await getSessionMessages(sessionId, { dir, sessionStore })).toHaveLength(8);
    expect(await listSubagents(sessionId, { dir, sessionStore })).toEqual(["a1"]);
    expect(textsOf(await getSubagentMessages(sessionId, "a1", { dir, sessionStore }))).toContain("seen");

    const fork = await forkSession(sessionId, { dir, sessionStore, upToMessageId: uuidAt(4), title: "A fork" });
    const forked = await getSessionMessages(fork.sessionId, { dir, sessionStore });
    expect(forked).toHaveLength(4);
    expect(textsOf(forked)).not.toContain("second question");
    expect(await listSessions({ dir, sessionStore })).toHaveLength(2);
    await deleteSession(sessionId, { dir, sessionStore });
    expect(await listSessions({ dir, sessionStore })).toMatchObject([{ sessionId: fork.sessionId }]);
    expect(await listSubagents(sessionId, { dir, sessionStore })).toEqual([]);
  });
});

/** A session of the SDK's in its folder. */
function writeTranscript(projectKey: string, lines: readonly unknown[]): void {
  const project = join(folder, "config/projects", projectKey);
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, `${sessionId}.jsonl`), lines.map((one) => `${JSON.stringify(one)}\n`).join(""));
}

it("repairs a mirror from the SDK's file, without a second copy of any line", async () => {
  const store = createClaudeSessionStore({ store: createMemoryStore() });
  const key = await keyOf(folder);
  const mode = { type: "permission-mode", permissionMode: "plan", sessionId };
  const lines = [mode, ...turn(1, "one"), mode, ...turn(5, "two"), { type: "tag", tag: "x", sessionId }];
  writeTranscript(key.projectKey, lines);
  await store.append(key, lines.slice(0, 7));
  await store.repairMirror(sessionId, { dir: folder });
  expect(await store.load(key)).toEqual(lines);
  await store.repairMirror(sessionId, { dir: folder });
  await importSessionToStore(sessionId, { append: () => Promise.resolve(), load: () => Promise.resolve(null) });
  expect(await store.load(key)).toEqual(lines);
});

it("takes a fork of 2,500 lines, which is one call of the SDK", { tags: ["slow"] }, async () => {
  const store = createMemoryStore();
  const sessionStore = createClaudeSessionStore({ store });
  const key = await keyOf(folder);
  for (let from = 1; from < 2500; from += 100)
    await sessionStore.append(
      key,
      Array.from({ length: 25 }, (_, at) => turn(from + at * 4, `question ${from + at * 4}`)).flat(),
    );
  const fork = await forkSession(sessionId, { dir: folder, sessionStore });
  expect(await getSessionMessages(fork.sessionId, { dir: folder, sessionStore })).toHaveLength(2500);
});

async function contextOf(store: SessionStore, sessionStore: ClaudeSessionStore, key: SessionKey): Promise<string> {
  const ref = sessionStore.sessionOf(key);
  const state = await store.load(ref);
  const records = (await Array.fromAsync(store.read(ref))).flatMap((page) => [...page.records]);
  const context = buildContext(records, { headId: state?.head.headId ?? null });
  for (const target of historyTargets.values())
    expect(target.validate(target.render(context).messages, context.model?.modelId ?? null)).toEqual([]);
  return JSON.stringify(context.messages);
}

it("gives every provider a valid context of a mirrored session", async () => {
  const store = createMemoryStore();
  const sessionStore = createClaudeSessionStore({ store });
  const key = await keyOf(folder);
  const open = reply(10, [{ type: "tool_use", id: "toolu_open", name: "Bash", input: { command: "sleep 9" } }]);
  await sessionStore.append(key, [...turn(1, "one"), ...turn(5, "two"), prompt(9, "three"), open]);
  const context = await contextOf(store, sessionStore, key);
  for (const text of ["one", "heron", "three", "sleep 9"]) expect(context).toContain(text);
});

it("hands a session of OpenAI Agents to the SDK, and continues it", async () => {
  const store = createMemoryStore();
  const key = await keyOf(folder);
  const agents = createAgentsSession({ store, sessionId: "customer-7" });
  await agents.addItems([
    { type: "message", role: "user", content: "Agents: what time is it?" },
    { type: "function_call", callId: "call_1", name: "clock", arguments: "{}", status: "completed" },
    { type: "function_call_result", callId: "call_1", name: "clock", status: "completed", output: "9:00" },
    {
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "It is nine." }],
    },
  ]);
  const { ref } = agents.log();
  const sessionStore = createClaudeSessionStore({ store, refOf: () => ref });
  const loaded = (await sessionStore.load(key)) ?? [];
  expect(loaded.map(({ type }) => type)).toEqual(["user", "assistant", "user", "assistant"]);
  for (const [at, { parentUuid }] of loaded.entries()) expect(parentUuid).toBe(at === 0 ? null : loaded[at - 1]?.uuid);
  for (const { type, message } of loaded)
    if (type === "assistant") expect((message as { content: unknown }).content).toBeInstanceOf(Array);
  const messages = await getSessionMessages(sessionId, { dir: folder, sessionStore });
  expect(messages).toHaveLength(4);
  expect(textsOf(messages)).toContain("It is nine.");

  // Claude Code resumes what it was handed, then OpenAI Agents does, and Claude Code again.
  const behind = (at: number, uuid: unknown, text: string) => ({ ...prompt(at, text), parentUuid: uuid });
  await sessionStore.append(key, [
    behind(70, loaded[3]?.uuid, "Claude: and now?"),
    reply(71, [{ type: "text", text: "Later." }]),
  ]);
  expect(JSON.stringify(await agents.getItems())).toContain("Claude: and now?");
  await agents.addItems([{ type: "message", role: "user", content: "Agents: thanks." }]);
  const mixed = (await sessionStore.load(key)) ?? [];
  // The folder is known by now; all else of the lines is the same.
  expect(mixed.slice(0, 4)).toEqual(loaded.map((one) => ({ ...one, cwd: "/home/u/project" })));
  expect(mixed[4]).toEqual(behind(70, loaded[3]?.uuid, "Claude: and now?"));
  expect(mixed[6]).toMatchObject({ parentUuid: uuidAt(71), message: { content: "Agents: thanks." } });
  const again = createClaudeSessionStore({ store, refOf: () => ref });
  await again.append(key, [behind(72, mixed[6]?.uuid, "Claude: bye.")]);
  expect(await getSessionMessages(sessionId, { dir: folder, sessionStore: again })).toHaveLength(8);
  const context = await contextOf(store, again, key);
  for (const text of ["It is nine.", "Later.", "Agents: thanks.", "Claude: bye."]) expect(context).toContain(text);
});

it("hands out nothing of a line that was redacted, and the lines around it", async () => {
  const store = createMemoryStore();
  const sessionStore = createClaudeSessionStore({ store });
  const key = await keyOf(folder);
  await sessionStore.append(key, [...turn(1, "one"), ...turn(5, "the password is otter"), ...turn(9, "three")]);
  const ref = sessionStore.sessionOf(key);
  await redactRecords(store, ref, [uuidAt(5)], { reason: "a secret" });
  expect(JSON.stringify((await store.load(ref))?.entry)).not.toContain("otter");
  const loaded = (await sessionStore.load(key)) ?? [];
  expect(JSON.stringify(loaded)).not.toContain("password");
  expect(loaded.map(({ uuid }) => uuid)).toEqual(Array.from({ length: 12 }, (_, at) => uuidAt(at + 1)));
  expect(await getSessionMessages(sessionId, { dir: folder, sessionStore })).toHaveLength(12);
  // The SDK's own file has the line still; it does not come back.
  await sessionStore.append(key, [...turn(5, "the password is otter")]);
  expect(JSON.stringify(await sessionStore.load(key))).not.toContain("password");
});

it("follows an edit of a line", async () => {
  const store = createMemoryStore();
  const sessionStore = createClaudeSessionStore({ store });
  const key = await keyOf(folder);
  await sessionStore.append(key, [...turn(1, "one"), ...turn(5, "two")]);
  const ref = sessionStore.sessionOf(key);
  await appendOnce(
    store,
    ref,
    [{ type: "context_edit", targetId: uuidAt(3), replacement: { content: [{ type: "text", text: "shortened" }] } }],
    { idempotencyKey: "edit" },
  );
  const loaded = (await sessionStore.load(key)) ?? [];
  expect(JSON.stringify(loaded)).toContain("shortened");
  expect(loaded.filter((_, at) => at !== 2)).toEqual(
    [...turn(1, "one"), ...turn(5, "two")].filter((_, at) => at !== 2),
  );
  expect(loaded[2]).toMatchObject({ uuid: uuidAt(3), parentUuid: uuidAt(2) });
});
