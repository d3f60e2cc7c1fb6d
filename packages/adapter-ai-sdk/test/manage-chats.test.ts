import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { createChatStore } from "../src/chat-store.ts";
import { user } from "./chat-server.ts";

describe("a chat store", () => {
  it("finds and renames a chat, and gives its title back without a name", async () => {
    const chats = createChatStore({ store: createMemoryStore() });
    expect(await chats.findChat("c")).toBeNull();
    await chats.createChat({ id: "c", title: "Trip" });
    await chats.renameChat("c", "Ghent");
    expect(await chats.findChat("c")).toMatchObject({ id: "c", title: "Ghent", activeStreamId: null });
    await chats.renameChat("c", "");
    expect((await chats.findChat("c"))?.title).toBeNull();
    await expect(chats.renameChat("missing", "x")).rejects.toMatchObject({ cause: { code: "SESSION_NOT_FOUND" } });
    await expect(chats.renameChat("c", 1 as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  it("archives a chat, or deletes it for good", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    for (const chatId of ["kept", "gone"]) await chats.saveChat({ chatId, messages: [user("u1")] });
    await chats.deleteChat("kept");
    await chats.deleteChat("gone", { purge: true });
    const { sessions } = await store.list({ state: "any" });
    expect(sessions.map(({ entry, archived }) => [entry["chatId"], archived])).toEqual([["kept", true]]);
    expect((await chats.listChats()).chats).toEqual([]);
  });

  it("counts and deletes the chats of one user, and those of no other", async () => {
    const store = createMemoryStore();
    const [ada, bob] = ["ada", "bob"].map((namespace) => createChatStore({ store, namespace }));
    for (const chats of [ada, bob]) await chats?.saveChat({ chatId: "c", messages: [user("u1")] });
    await ada?.saveChat({ chatId: "d", messages: [user("u2")] });
    await ada?.deleteChat("d");
    const planned = await ada?.deleteUser({ dryRun: true });
    expect(planned).toMatchObject({ state: "planned", counts: { sessions: 2, archived: 1, messages: 2 } });
    expect(await ada?.loadChat("c")).toHaveLength(1);
    expect(await ada?.deleteUser()).toMatchObject({ state: "deleted", counts: planned?.counts });
    expect((await store.list({ namespace: "ada", state: "any" })).sessions).toEqual([]);
    expect(await bob?.loadChat("c")).toHaveLength(1);
    await expect(createChatStore({ store }).deleteUser()).rejects.toMatchObject({ cause: { code: "INPUT_INVALID" } });
  });
});
