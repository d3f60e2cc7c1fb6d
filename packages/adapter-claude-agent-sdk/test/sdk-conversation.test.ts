import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import {
  createAgentScope,
  hasErrorCode,
  type Message,
  openSession,
  sessionRef,
  type SessionStore,
} from "@throughline/core";
import { keptOnReset, resetSession, systemClock, systemRandom, updateEntry } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createSdkConversation, type SdkConversationOptions } from "../src/sdk-conversation.ts";
import { readSdkSessionId, withSdkSessionId } from "../src/sdk-session-id.ts";
import { scriptedAgent } from "./scripted-agent.ts";

const ref = sessionRef({ key: "agent:main:main" });

interface Fixture extends Disposable {
  readonly folder: string;
  readonly seen: { prompt: string; resume: unknown }[];
  /** As after a restart: nothing is remembered but what the store holds. */
  conversation(
    store: SessionStore,
    options?: Partial<SdkConversationOptions>,
  ): ReturnType<typeof createSdkConversation>;
  /** The SDK's files are gone. */
  forget(): void;
}

function fixture(): Fixture {
  const root = mkdtempSync(join(tmpdir(), "throughline-sdk-"));
  let folder = mkdtempSync(join(root, "agent-"));
  const seen: Fixture["seen"] = [];
  return {
    folder: root,
    seen,
    conversation: (store, options = {}) =>
      createSdkConversation({ store, ref, query: scriptedAgent(folder, seen), ...options }),
    forget: () => {
      folder = mkdtempSync(join(root, "agent-"));
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

async function messages(store: SessionStore): Promise<Message[]> {
  const pages = await Array.fromAsync(store.read(ref));
  return pages.flatMap(({ records }) =>
    records.flatMap(({ type, record }) => (type === "message" ? [record["message"] as Message] : [])),
  );
}

const idOf = async (store: SessionStore): Promise<unknown> => (await store.load(ref))?.entry["sdkSessionId"];

/** An SDK that says these messages, and remembers how often it was asked. */
function saying(said: readonly object[], asked: { times: number }): NonNullable<SdkConversationOptions["query"]> {
  return async function* () {
    asked.times += 1;
    for (const message of said) yield { session_id: "sdk-1", parent_tool_use_id: null, ...message };
  };
}

const reply = (...content: readonly object[]): object => ({ type: "assistant", message: { id: "m1", content } });
const ended = { type: "result", subtype: "success", is_error: false, result: "Done." };

describe("the entry of a conversation", () => {
  it("has the model and the tokens of its replies, over several runs", async () => {
    const store = createMemoryStore();
    const usage = { input_tokens: 30, output_tokens: 7, cache_read_input_tokens: 100, cache_creation_input_tokens: 0 };
    const spoken = (id: string, text: string, model = "claude-opus-4-7"): object => ({
      type: "assistant",
      message: { id, model, usage, content: [{ type: "text", text }] },
    });
    const said = [spoken("m1", "One."), spoken("m1", "Two."), spoken("m2", "Three."), ended];
    const conversation = createSdkConversation({ store, ref, query: saying(said, { times: 0 }) });
    await conversation.send("Count.");
    const fields = { model: "claude-opus-4-7", modelProvider: "anthropic", totalTokens: 137, totalTokensFresh: true };
    expect((await store.load(ref))?.entry).toMatchObject({ ...fields, inputTokens: 60, outputTokens: 14 });
    // As after a restart.
    const later = saying([spoken("m3", "Four.", "claude-sonnet-4-5"), ended], { times: 0 });
    await createSdkConversation({ store, ref, query: later }).send("And?");
    expect((await store.load(ref))?.entry).toMatchObject({
      model: "claude-sonnet-4-5",
      inputTokens: 90,
      outputTokens: 21,
    });
  });
});

describe("a session with a policy", () => {
  it("is not answered where its entry or a rule denies it, and nothing is stored", async () => {
    const store = createMemoryStore();
    const asked = { times: 0 };
    const query = saying([ended], asked);
    const denied = createSdkConversation({ store, ref, query, sendPolicy: readSendPolicy({ default: "deny" }) });
    await expect(denied.send("Hi")).rejects.toMatchObject({ code: "SEND_DENIED", details: { source: "default" } });
    expect(await store.load(ref)).toBeNull();
    const conversation = createSdkConversation({ store, ref, query });
    await conversation.send("Hi");
    await updateEntry(store, ref, (entry) => ({ ...entry, sendPolicy: "deny" }));
    const { length } = await messages(store);
    await expect(conversation.send("Hi again")).rejects.toMatchObject({ code: "SEND_DENIED" });
    expect([asked.times, (await messages(store)).length]).toEqual([1, length]);
  });

  it("ends a run behind a tool during which the session was denied, and keeps what ran", async () => {
    const store = createMemoryStore();
    let isAborted = false;
    const query: NonNullable<SdkConversationOptions["query"]> = async function* ({ options }) {
      const { signal } = options["abortController"] as AbortController;
      signal.addEventListener("abort", () => (isAborted = true));
      const common = { session_id: "sdk-1", parent_tool_use_id: null };
      yield { ...common, ...reply({ type: "tool_use", id: "c1", name: "charge", input: {} }) };
      await updateEntry(store, ref, (entry) => ({ ...entry, sendPolicy: "deny" }));
      const content = [{ type: "tool_result", tool_use_id: "c1", content: "charged" }];
      yield { ...common, type: "user", message: { role: "user", content } };
      yield { ...common, ...reply({ type: "text", text: "Done." }) };
    };
    const run = createSdkConversation({ store, ref, query }).send("Pay.");
    await expect(run).rejects.toMatchObject({ code: "SEND_DENIED", outcome: null });
    const roles = (await messages(store)).map(({ role }) => role);
    expect([roles, isAborted]).toEqual([["user", "assistant", "toolResult"], true]);
  });

  it("begins anew when it was idle for too long: the SDK's session is not resumed", async () => {
    let nowMs = Date.parse("2026-03-02T10:00:00Z");
    const clock = { nowMs: () => nowMs, sleep: systemClock.sleep };
    const store = createMemoryStore({ clock });
    const resumed: unknown[] = [];
    const query: NonNullable<SdkConversationOptions["query"]> = async function* ({ options }) {
      resumed.push(options["resume"] ?? null);
      yield { session_id: "sdk-1", parent_tool_use_id: null, ...ended };
    };
    const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const conversation = createSdkConversation({ store, ref, query, clock, reset });
    for (const minutes of [0, 10, 40]) {
      nowMs += minutes * 60_000;
      await conversation.send("Hi");
    }
    expect(resumed).toEqual([null, "sdk-1", null]);
    expect(await messages(store)).toHaveLength(1);
    expect((await store.list({ state: "any" })).sessions).toHaveLength(2);
  });
});

describe("what an SDK may say", () => {
  it("a reply that speaks of a session that is not found is a reply, and the run is not made again", async () => {
    const store = createMemoryStore();
    const asked = { times: 0 };
    const text = "The session cookie was not found in the request.";
    const query = saying([reply({ type: "text", text }), { ...ended, result: text }], asked);
    const conversation = createSdkConversation({ store, ref, query });
    await conversation.send("Why am I logged out?");
    expect(await conversation.send("Are you sure?")).toMatchObject({ text, isRecovered: false });
    expect([asked.times, await idOf(store)]).toEqual([2, "sdk-1"]);
  });

  it("a call whose arguments are nested too deeply is kept as text, and the run goes on", async () => {
    const store = createMemoryStore();
    let deep: unknown = 1;
    for (let level = 0; level < 250; level++) deep = [deep];
    const call = { type: "tool_use", id: "t1", name: "look", input: { deep } };
    const query = saying([reply(call), ended], { times: 0 });
    expect((await createSdkConversation({ store, ref, query }).send("Look.")).subtype).toBe("success");
    expect(JSON.stringify(await messages(store))).toContain('"arguments":{},"partialJson":"{');
  });

  it("nothing, when the signal came before or while the session was opened", async () => {
    const asked = { times: 0 };
    const controller = new AbortController();
    const store = createMemoryStore();
    const random = {
      ...systemRandom,
      uuid: (): string => {
        controller.abort();
        return systemRandom.uuid();
      },
    };
    const query = saying([ended], asked);
    const conversation = createSdkConversation({ store, ref, query, random });
    await expect(conversation.send("Hi", { signal: controller.signal })).rejects.toMatchObject({ code: "ABORTED" });
    await expect(conversation.send("Hi", { signal: controller.signal })).rejects.toMatchObject({ code: "ABORTED" });
    expect([asked.times, (await store.load(ref))?.head.turn]).toEqual([0, null]);
  });
});

describe("a session of ours and the SDK's behind it", () => {
  it("stores the id of the first run and resumes it over a restart, under whatever id comes back", async () => {
    using at = fixture();
    const path = join(at.folder, "sessions.db");
    {
      await using store = createSqliteStore({ path, create: true });
      const run = await at.conversation(store).send("hello");
      expect(run).toMatchObject({
        text: "You said 1 things.",
        subtype: "success",
        sdkSessionId: "sdk-1",
        isRecovered: false,
      });
      expect(await idOf(store)).toBe("sdk-1");
    }
    await using store = createSqliteStore({ path, create: false });
    const before = (await store.load(ref))?.updatedAtMs ?? 0;
    expect(await at.conversation(store).send("again")).toMatchObject({
      text: "You said 2 things.",
      sdkSessionId: "sdk-1-2",
    });
    expect(await idOf(store)).toBe("sdk-1-2");
    expect((await store.load(ref))?.updatedAtMs).toBeGreaterThanOrEqual(before);
    expect(at.seen.map(({ resume }) => resume)).toEqual([null, "sdk-1"]);
  });

  it("keeps replies, calls and results as records any provider can be given", async () => {
    using at = fixture();
    const store = createMemoryStore();
    await at.conversation(store).send("use a tool");
    const said = await messages(store);
    expect(said.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "assistant",
      "assistant",
      "toolResult",
      "assistant",
    ]);
    expect(said[3]).toMatchObject({
      fragment: true,
      content: [{ type: "toolCall", id: "toolu_1", name: "Read", arguments: { path: "a.txt" } }],
    });
    expect(said[4]).toMatchObject({ toolCallId: "toolu_1", toolName: "Read", isError: false });
    expect(JSON.stringify(said)).not.toContain("of a sub-agent");
    const pages = await Array.fromAsync(store.read(ref));
    const records = pages.flatMap((page) => page.records);
    const context = buildContext(records, { headId: (await store.load(ref))?.head.headId ?? null });
    const { messages: rendered } = renderAnthropic(context);
    expect(validateAnthropic(rendered)).toEqual([]);
    expect(rendered.slice(0, 4).map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect((await store.load(ref))?.head.turn).toBeNull();
  });

  it("goes on once from our own history when the SDK's session is gone", async () => {
    using at = fixture();
    const store = createMemoryStore();
    await at.conversation(store).send("my name is Ann");
    at.forget();
    const run = await at.conversation(store).send("what is my name?");
    expect(run).toMatchObject({ isRecovered: true, sdkSessionId: "sdk-1", isError: false });
    expect(at.seen.map(({ resume }) => resume)).toEqual([null, "sdk-1", null]);
    expect(at.seen[2]?.prompt).toContain("my name is Ann");
    expect(at.seen[2]?.prompt).toContain("You said 1 things.");
    expect(at.seen[2]?.prompt.endsWith("what is my name?")).toBe(true);
    // The question stands in the record once, as it was asked.
    expect(
      (await messages(store))
        .filter(({ role }) => role === "user")
        .map((message) => ("content" in message ? message["content"] : null)),
    ).toEqual(["my name is Ann", "what is my name?"]);
    const pages = await Array.fromAsync(store.read(ref));
    expect(JSON.stringify(pages)).toContain("sdk-session-lost");
    expect(await idOf(store)).toBe("sdk-1");
  });

  it("tells a long history's newest part and says that it does", async () => {
    using at = fixture();
    const store = createMemoryStore();
    await openSession(store, ref, { random: systemRandom, entry: { sdkSessionId: "gone" } });
    const texts = Array.from({ length: 40 }, (_, index) => `message number ${index} ${"x".repeat(200)}`);
    await store.append(
      ref,
      texts.map((content) => ({ type: "message", message: { role: "user", content } })),
    );
    await at.conversation(store, { historyCharacters: 1000 }).send("go on");
    const told = at.seen[1]?.prompt ?? "";
    expect(told).toContain("message number 39");
    expect(told).not.toContain("message number 9 ");
    expect(told).toMatch(/\[\d+ earlier characters are left out\]\n\n\[User\]/);
  });

  it("forgets the id at a reset, and what older programs called it too [C43]", async () => {
    using at = fixture();
    const store = createMemoryStore();
    const legacy = { sessionId: "s", claudeCliSessionId: "old", cliSessionIds: { "claude-cli": "older", codex: "c" } };
    expect(readSdkSessionId(legacy)).toBe("old");
    expect(readSdkSessionId({ sessionId: "s", cliSessionIds: { "claude-cli": "older" } })).toBe("older");
    expect(readSdkSessionId({ ...legacy, sdkSessionId: "new" })).toBe("new");
    expect(withSdkSessionId(legacy, "x")).toEqual({
      sdkSessionId: "x",
      claudeCliSessionId: undefined,
      cliSessionIds: { codex: "c" },
    });
    await at.conversation(store).send("hello");
    await resetSession(store, ref, { random: systemRandom, keep: keptOnReset });
    expect(await idOf(store)).toBeUndefined();
    await at.conversation(store).send("hello");
    expect(at.seen.map(({ resume }) => resume)).toEqual([null, null]);
  });

  it("resumes no other agent's session", async () => {
    using at = fixture();
    const store = createMemoryStore();
    await at.conversation(store).send("hello");
    const scope = createAgentScope(store, { agentId: "codex" });
    const failure: unknown = await at
      .conversation(scope)
      .send("whose is this?")
      .catch((error: unknown) => error);
    expect(hasErrorCode(failure, "KEY_AGENT_MISMATCH")).toBe(true);
    expect(at.seen).toHaveLength(1);
  });

  it("keeps what came and the id when a run is aborted or fails, and lets nobody else in meanwhile", async () => {
    using at = fixture();
    const store = createMemoryStore();
    const controller = new AbortController();
    const running = at.conversation(store).send("wait", { signal: controller.signal });
    await expect.poll(async () => (await messages(store)).length).toBe(2);
    const other: unknown = await at
      .conversation(store)
      .send("me too")
      .catch((error: unknown) => error);
    expect(hasErrorCode(other, "SESSION_BUSY")).toBe(true);
    controller.abort();
    expect(hasErrorCode(await running.catch((error: unknown) => error), "ABORTED")).toBe(true);
    expect(await idOf(store)).toBe("sdk-1");
    const failed: unknown = await at
      .conversation(store)
      .send("fail")
      .catch((error: unknown) => error);
    expect(hasErrorCode(failed, "MODEL_FAILED")).toBe(true);
    expect(String(failed)).toContain("exited with code 3");
    expect((await store.load(ref))?.head.turn).toBeNull();
    expect(await at.conversation(store).send("and now?")).toMatchObject({ subtype: "success" });
    expect((await messages(store)).map(({ role }) => role)).toEqual(["user", "assistant", "user", "user", "assistant"]);
  });

  it("names the command that installs the SDK when it is missing", async () => {
    const script = `
      import { registerHooks } from "node:module";
      registerHooks({
        resolve(specifier, context, next) {
          if (specifier !== "@anthropic-ai/claude-agent-sdk") return next(specifier, context);
          throw Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
        },
      });
      const { loadAgentQuery } = await import(${JSON.stringify(join(import.meta.dirname, "../src/agent-query.ts"))});
      const { code, remedy } = await loadAgentQuery().catch((error) => error);
      process.stdout.write(JSON.stringify({ code, remedy }));`;
    const args = ["--input-type=module", "--eval", script];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
    expect(JSON.parse(stdout)).toEqual({
      code: "MODEL_SDK_MISSING",
      remedy: "npm install @anthropic-ai/claude-agent-sdk",
    });
  });
});
