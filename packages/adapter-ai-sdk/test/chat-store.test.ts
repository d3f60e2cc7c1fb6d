import {
  AISDKError,
  convertToModelMessages,
  readUIMessageStream,
  validateUIMessages,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasErrorCode, openSession, type SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { endingStore } from "@throughline/test-kit";
import { type ChatStore, createChatStore, type StoredMessage } from "../src/chat-store.ts";
import { numbers, partTypes } from "./sample-parts.ts";
import { recordsOf, spoken } from "./scripted-model.ts";

const user = (id: string, text: string = id): StoredMessage => ({ id, role: "user", parts: [{ type: "text", text }] });
const reply = (id: string, ...parts: object[]): StoredMessage => ({ id, role: "assistant", parts });
const text = (words: string, state: string = "done"): object => ({ type: "text", text: words, state });
const step = { type: "step-start" };

function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "throughline-chats-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

function randomChat(seed: number): readonly StoredMessage[] {
  const next = numbers(seed);
  return Array.from({ length: 1 + Math.floor(next() * 5) }, (_, at) => {
    const parts = Array.from(
      { length: 1 + Math.floor(next() * 6) },
      () => partTypes[Math.floor(next() * partTypes.length)] as object,
    );
    const unique = parts.map((part, place) =>
      "toolCallId" in part ? { ...part, toolCallId: `${at}-${place}` } : part,
    );
    const metadata = next() < 0.5 ? {} : { metadata: { createdAt: "2026-11-27T12:00:00.000Z", cost: next() } };
    return next() < 0.4 ? { ...user(`u${at}`), ...metadata } : { ...reply(`a${at}`, ...unique), ...metadata };
  });
}

const all = async (chats: ChatStore, id: string = "c"): Promise<string> =>
  (await chats.loadChat(id)).map((message) => message.id).join(" ");

describe("createChatStore", () => {
  it("gives back what was saved, whatever its parts, and the SDK accepts it", async () => {
    const store = createMemoryStore();
    for (let seed = 1; seed <= 60; seed++) {
      const messages = randomChat(seed);
      const id = `chat ${seed}`;
      await createChatStore({ store }).saveChat({ chatId: id, messages });
      const other = createChatStore({ store });
      const loaded = await other.loadChat(id);
      expect(loaded).toEqual(messages);
      await validateUIMessages({ messages: loaded });
      // A second time nothing is new.
      const { lastSeq } = (await store.load(other.sessionOf(id)))?.head ?? { lastSeq: 0 };
      await other.saveChat({ chatId: id, messages });
      expect((await store.load(other.sessionOf(id)))?.head.lastSeq).toBe(lastSeq);
      const records = await recordsOf(store, other.sessionOf(id));
      const context = buildContext(records, { headId: (await store.load(other.sessionOf(id)))?.head.headId ?? null });
      for (const target of historyTargets.values())
        expect(target.validate(target.render(context).messages, null)).toEqual([]);
    }
  });

  it("keeps an unknown type of part, hostile names and fields of others", async () => {
    const store = createMemoryStore();
    const odd = JSON.parse(
      '{"id":"__proto__","role":"assistant","parts":[{"type":"hologram","x":[{"__proto__":1}]},{"type":"tool-__proto__","toolCallId":"../x","state":"output-available","input":{"constructor":1},"output":"\\u0000\\u202e\\ud800"}],"constructor":"mine"}',
    ) as StoredMessage;
    for (const id of ["__proto__", "../x", "", "x".repeat(900), "🦉"]) {
      await createChatStore({ store }).saveChat({ chatId: id, messages: [user("u"), odd] });
      expect(await createChatStore({ store }).loadChat(id)).toEqual([user("u"), odd]);
    }
    expect((await createChatStore({ store }).listChats()).chats.map(({ id }) => id.length).toSorted()).toHaveLength(5);
  });

  it("changes the last reply as it grows, and takes back what the program dropped", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    const save = (...messages: StoredMessage[]): Promise<void> => chats.saveChat({ chatId: "c", messages });
    await save(user("u1"), reply("a1", step, text("It", "streaming")));
    await save(user("u1"), reply("a1", step, text("It is noon.")));
    expect(await spoken(store, chats.sessionOf("c"))).toEqual(["user: u1", "assistant: It is noon."]);
    // Asked for another answer, the program leaves the first one out.
    await save(user("u1"), reply("a2", step, text("Midnight.")));
    expect(await chats.loadChat("c")).toEqual([user("u1"), reply("a2", step, text("Midnight."))]);
    await save(user("u0", "edited"), reply("a3", text("x")));
    expect(await all(chats)).toBe("u0 a3");
    await save();
    expect(await chats.loadChat("c")).toEqual([]);
    const records = JSON.stringify(await recordsOf(store, chats.sessionOf("c")));
    for (const words of ["It is noon.", "Midnight.", "edited"]) expect(records).toContain(words);
  });

  it("takes back messages of which a model sees nothing", async () => {
    const chats = createChatStore({ store: createMemoryStore() });
    const note = reply("n", { type: "data-note", data: 1 });
    await chats.saveChat({ chatId: "c", messages: [user("u"), note] });
    await chats.saveChat({ chatId: "c", messages: [user("u")] });
    expect(await all(chats)).toBe("u");
    await chats.saveChat({ chatId: "c", messages: [user("u"), { ...note, id: "n2" }] });
    expect(await all(chats)).toBe("u n2");
  });

  it("takes over a chat that is longer than one append, and never cuts a message", async () => {
    const store = createMemoryStore({ limits: { batchRecords: 40 } });
    const call = { type: "tool-clock", input: {}, state: "output-available", output: "noon" };
    const messages = Array.from({ length: 60 }, (_, at) =>
      reply(`a${at}`, step, { ...call, toolCallId: `t${at}` }, step, text(`answer ${at}`)),
    );
    await createChatStore({ store }).saveChat({ chatId: "c", messages });
    expect(await createChatStore({ store }).loadChat("c")).toEqual(messages);
  });

  it("replaces the end of a chat by messages that no model sees, in several appends", async () => {
    const store = createMemoryStore({ limits: { batchRecords: 40 } });
    const silent = Array.from({ length: 100 }, (_, at) => reply(`s${at}`, step));
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u1"), reply("a1", text("old"))] });
    const messages = [user("u1"), ...silent, reply("a2", text("new"))];
    await chats.saveChat({ chatId: "c", messages });
    expect(await createChatStore({ store }).loadChat("c")).toEqual(messages);
    expect(await recordsOf(store, chats.sessionOf("c"))).toHaveLength(2 + 1 + 101);
  });

  it("writes a message once that stands behind an aborted answer", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    const aborted = reply("a1");
    await chats.saveChat({ chatId: "c", messages: [user("u1"), aborted, user("u2"), reply("a2", text("two"))] });
    const changed = [user("u1"), { ...aborted, parts: [step] }, user("u2"), reply("a2", text("2"))];
    await chats.saveChat({ chatId: "c", messages: changed });
    const messages = [user("u1"), user("u2"), reply("a2", text("2"))];
    await chats.saveChat({ chatId: "c", messages });
    for (let turn = 3; turn < 20; turn++) {
      messages.push(user(`u${turn}`), reply(`a${turn}`, text("more")));
      await chats.saveChat({ chatId: "c", messages });
    }
    expect(await createChatStore({ store }).loadChat("c")).toEqual(messages);
    // Two records a turn, and those of the two edits.
    expect((await recordsOf(store, chats.sessionOf("c"))).length).toBe(4 + 5 + 4 + 17 * 2);
  });

  it("loses nothing of two handles that load and save 60 times each", async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "s.sqlite");
    await using one = createSqliteStore({ path });
    await using two = createSqliteStore({ path });
    const work = async (store: SessionStore, name: string): Promise<void> => {
      const chats = createChatStore({ store });
      for (let at = 0; at < 60; at++) {
        const messages = await chats.loadChat("c");
        await chats.saveChat({ chatId: "c", messages: [...messages, user(`${name}${at}`)] });
      }
    };
    await Promise.all([work(one, "a"), work(two, "b")]);
    const ids = (await createChatStore({ store: one }).loadChat("c")).map(({ id }) => id);
    expect(new Set(ids).size).toBe(120);
    expect(ids).toHaveLength(120);
  });

  it("answers every call of a chat that goes to a model", async () => {
    const chats = createChatStore({ store: createMemoryStore() });
    const half = reply("a1", step, text("I look."), {
      type: "tool-clock",
      toolCallId: "t1",
      state: "input-available",
      input: {},
    });
    await chats.saveChat({ chatId: "c", messages: [user("u1"), half, user("u2")] });
    expect(await chats.loadChat("c")).toEqual([user("u1"), half, user("u2")]);
    const sent = await convertToModelMessages(await chats.loadChat<UIMessage>("c", { forModel: true }));
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    const open = await convertToModelMessages(await chats.loadChat<UIMessage>("c"));
    expect(open.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  });

  it("lists chats by what they are called, page by page, and archives them", async () => {
    const chats = createChatStore({ store: createMemoryStore(), agentId: "ada" });
    await chats.createChat({ id: "one", title: "First" });
    await chats.saveChat({ chatId: "two", messages: [user("u")], activeStreamId: "s1" });
    const { chats: listed, nextCursor } = await chats.listChats({ limit: 1 });
    const rest = await chats.listChats({ limit: 5, cursor: nextCursor ?? "" });
    const found = [...listed, ...rest.chats].map(({ id, title, activeStreamId }) => [id, title, activeStreamId]);
    expect(found.toSorted()).toEqual([
      ["one", "First", null],
      ["two", null, "s1"],
    ]);
    await chats.deleteChat("one");
    expect((await chats.listChats()).chats).toHaveLength(1);
    expect(await chats.loadChat("nobody")).toEqual([]);
  });

  it("streams the answer that is being saved to who comes back", async () => {
    using folder = temporaryFolder();
    await using store = createSqliteStore({ path: join(folder.path, "s.sqlite") });
    const writer = createChatStore({ store });
    const reader = createChatStore({ store });
    const save = (parts: object[], activeStreamId: string | null = "s1"): Promise<void> =>
      writer.saveChat({ chatId: "c", messages: [user("u1"), reply("a1", ...parts)], activeStreamId });
    const call = { type: "tool-clock", toolCallId: "t1", input: {} };
    expect(await reader.resumeChat("c")).toBeNull();
    await save([step, text("I lo", "streaming")]);
    const stream = await reader.resumeChat("c");
    const seen: UIMessage[] = [];
    const chunks = stream as unknown as ReadableStream<UIMessageChunk>;
    const done = (async () => {
      for await (const message of readUIMessageStream({ stream: chunks })) seen.push(message);
    })();
    await expect.poll(() => seen.length).toBeGreaterThan(0);
    await save([step, text("I look."), { ...call, state: "input-available" }]);
    const whole = [step, text("I look."), { ...call, state: "output-available", output: "noon" }, step, text("Noon.")];
    await save(whole.slice(0, 3));
    await save(whole, null);
    await done;
    expect(seen.at(-1)).toMatchObject({ id: "a1", role: "assistant", parts: whole });
    expect(await reader.resumeChat("c")).toBeNull();
  });

  it("ends a resumed stream with its signal", async () => {
    using folder = temporaryFolder();
    await using store = createSqliteStore({ path: join(folder.path, "s.sqlite") });
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u")], activeStreamId: "s1" });
    const stop = new AbortController();
    const stream = await chats.resumeChat("c", { signal: stop.signal });
    const read = stream?.getReader().read();
    stop.abort();
    expect(await read).toEqual({ done: true, value: undefined });
  });

  it("reads a session of another program as messages, and continues it", async () => {
    const store = createMemoryStore();
    const ref = { namespace: "", agentId: "main", key: "agent:main:other" };
    await openSession(store, ref);
    const call = { type: "toolCall", id: "x1", name: "look", arguments: { at: 1 } };
    await store.append(ref, [
      { type: "message", message: { role: "user", content: "Look." } },
      { type: "message", message: { role: "assistant", content: [call], stopReason: "toolUse" } },
      { type: "message", message: { role: "toolResult", toolCallId: "x1", toolName: "look", content: "seen" } },
      { type: "message", message: { role: "assistant", content: "Done.", stopReason: "stop" } },
    ]);
    const chats = createChatStore({ store, refOf: () => ref });
    const messages = await chats.loadChat<StoredMessage>("any");
    await validateUIMessages({ messages });
    expect(messages.map(({ parts }) => parts.map((part) => (part as { type: string }).type).join(" "))).toEqual([
      "text",
      "step-start dynamic-tool step-start text",
    ]);
    await chats.saveChat({ chatId: "any", messages: [...messages, user("u9")] });
    expect(await chats.loadChat("any")).toEqual([...messages, user("u9")]);
    expect(await recordsOf(store, ref)).toHaveLength(5);
  });

  it("compares what it saves with the log and not with what the program made of a message", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u1"), reply("a1", text("first"))] });
    const loaded = await chats.loadChat<StoredMessage>("c");
    Object.assign(loaded[1]?.parts[0] ?? {}, { text: "changed" });
    await chats.saveChat({ chatId: "c", messages: loaded });
    const seen = await createChatStore({ store }).loadChat("c");
    expect(seen).toEqual([user("u1"), reply("a1", text("changed"))]);
    // Nothing is new: nothing is written.
    const { length } = await recordsOf(store, chats.sessionOf("c"));
    await chats.saveChat({ chatId: "c", messages: seen });
    expect(await recordsOf(store, chats.sessionOf("c"))).toHaveLength(length);
  });

  it("does not see what was redacted, also in a store that is open", async () => {
    const { redactRecords } = await import("@throughline/core");
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u1", "the word is heron"), reply("a1", text("noted"))] });
    expect(JSON.stringify(await chats.loadChat("c"))).toContain("heron");
    const [first] = await recordsOf(store, chats.sessionOf("c"));
    await redactRecords(store, chats.sessionOf("c"), [first?.id ?? ""], { reason: "secret" });
    expect(JSON.stringify(await chats.loadChat("c"))).not.toContain("heron");
    expect(
      JSON.stringify(await Array.fromAsync(store.read(chats.sessionOf("c"), { payload: "source" }))),
    ).not.toContain("heron");
  });

  it("refuses wrong input and fails with the SDK's error, with nothing stored halfway", async () => {
    const store = createMemoryStore({ limits: { recordBytes: 2000 } });
    const chats = createChatStore({ store });
    await expect(chats.saveChat({ chatId: "c", messages: [null as never] })).rejects.toThrow(/messages/);
    await expect(chats.saveChat({ chatId: "c", mesages: [] } as never)).rejects.toThrow(/messages/);
    const large = await chats
      .saveChat({ chatId: "c", messages: [user("u1"), user("u2", "x".repeat(3000))] })
      .catch((error: unknown) => error);
    expect(AISDKError.isInstance(large)).toBe(true);
    expect(hasErrorCode((large as Error).cause, "RECORD_TOO_LARGE")).toBe(true);
    const circular: StoredMessage & { self?: unknown } = { ...user("u3") };
    circular.self = circular;
    const unwritable = await chats
      .saveChat({ chatId: "c", messages: [user("u1"), circular] })
      .catch((error: unknown) => error);
    expect(AISDKError.isInstance(unwritable)).toBe(true);
    expect((unwritable as Error).message).toContain("messages[1]");
    expect(hasErrorCode((unwritable as Error).cause, "INPUT_INVALID")).toBe(true);
    expect(await chats.loadChat("c")).toEqual([]);
    for (let calls = 1; calls < 20; calls++) {
      const real = createMemoryStore();
      const ending = endingStore(real, calls, true);
      const gone = await createChatStore({ store: ending.store })
        .saveChat({ chatId: "c", messages: [user("u1"), reply("a1", step, text("a"), step, text("b"))] })
        .catch((error: unknown) => error);
      if (ending.made() < calls) break;
      // A read that was done is given on: the next call fails.
      if (gone !== undefined) expect(hasErrorCode((gone as Error).cause, "STORE_CLOSED")).toBe(true);
      expect([0, 2]).toContain((await createChatStore({ store: real }).loadChat("c")).length);
    }
  });
});
