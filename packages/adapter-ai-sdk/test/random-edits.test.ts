import { expect, it } from "vitest";
import type { SessionRef, SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { testSize } from "../../../tools/test-size.ts";
import { createChatStore, type StoredMessage } from "../src/chat-store.ts";
import { numbers, partTypes } from "./sample-parts.ts";
import { recordsOf } from "./scripted-model.ts";

/** Edits of a chat as a program makes them: each gives the whole list, as a file of it would be written. */
class EditedChat {
  readonly #next: () => number;
  #made = 0;
  messages: readonly StoredMessage[] = [];

  constructor(seed: number) {
    this.#next = numbers(seed);
  }

  below(count: number): number {
    return Math.floor(this.#next() * count);
  }

  /** Changes the list once, and returns the name of the edit. */
  edit(): string {
    const list = [...this.messages];
    const at = this.below(list.length + 1);
    const edits: Readonly<Record<string, () => readonly StoredMessage[]>> = {
      ask: () => [...list, this.message("user"), this.message("assistant")],
      append: () => [...list, this.message()],
      insert: () => list.toSpliced(at, 0, this.message()),
      remove: () => list.toSpliced(at, 1),
      regenerate: () => [...list.slice(0, at), this.message("assistant")],
      change: () => list.map((one, place) => (place === at ? { ...this.message(one.role), id: one.id } : one)),
      changeTwo: () =>
        list.map((one, place) => (place === at || place === at + 1 ? { ...this.message(one.role), id: one.id } : one)),
      grow: () =>
        list.map((one, place) =>
          place === list.length - 1 ? { ...one, parts: [...one.parts, ...this.#parts()] } : one,
        ),
      move: () => [...list.slice(at), ...list.slice(0, at)],
      again: () => [...list, ...list.slice(at, at + 1)],
      clear: () => (this.below(4) === 0 ? [] : list),
    };
    const isFirst = this.#made < 4;
    const name = isFirst ? "ask" : (Object.keys(edits)[this.below(Object.keys(edits).length)] as string);
    this.messages = edits[name]?.() ?? list;
    return name;
  }

  message(role: StoredMessage["role"] = this.below(3) === 0 ? "user" : "assistant"): StoredMessage {
    this.#made += 1;
    // Without `generateMessageId` the SDK leaves the id of a reply empty.
    const id = this.below(12) === 0 ? "" : `m${this.#made}`;
    const said = { type: "text", text: `said ${this.#made}` };
    return { id, role, parts: role === "user" && this.below(4) > 0 ? [said] : this.#parts() };
  }

  /** Often nothing that a model sees, as an answer that was aborted before its first token. */
  #parts(): readonly object[] {
    this.#made += 1;
    const silent: readonly object[] = [{ type: "step-start" }, { type: "data-x", data: 1 }, { type: "text", text: "" }];
    if (this.below(2) === 0) return silent.slice(0, this.below(4));
    return Array.from({ length: 1 + this.below(3) }, (_, at) => {
      const part = partTypes[this.below(partTypes.length)] as object;
      return "toolCallId" in part ? { ...part, toolCallId: `t${this.#made}-${at}` } : part;
    });
  }
}

/** What a model sees, without the ids of records. */
async function seenIn(store: SessionStore, ref: SessionRef): Promise<readonly object[]> {
  const headId = (await store.load(ref))?.head.headId ?? null;
  const { messages } = buildContext(await recordsOf(store, ref), { headId });
  return messages.map(({ role, content }) => ({ role, content }));
}

/** Saves one random chat several times; what differs from a file that is written whole, or null. */
async function faultOf(seed: number): Promise<object | null> {
  const store = createMemoryStore();
  const chat = new EditedChat(seed);
  let chats = createChatStore({ store });
  const names: string[] = [];
  /** Of another program that saves in the same chat. */
  let others: readonly string[] = [];
  for (let save = 0; save < 6; save++) {
    if (chat.below(3) === 0) {
      chats = createChatStore({ store });
      chat.messages = await chats.loadChat("c");
      others = [];
    }
    names.push(chat.edit());
    if (chat.below(6) === 0) {
      const other = createChatStore({ store });
      const message = { ...chat.message(), id: `other ${save}` };
      await other.saveChat({ chatId: "c", messages: [...(await other.loadChat("c")), message] });
      others = [...others, message.id];
    }
    await chats.saveChat({ chatId: "c", messages: chat.messages });
    const reader = createChatStore({ store });
    const loaded = await reader.loadChat<StoredMessage>("c");
    const foreign = loaded.flatMap(({ id }) => (id.startsWith("other") && others.includes(id) ? [id] : []));
    const own = loaded.filter(({ id }) => !others.includes(id));
    const lastSeq = (await store.load(chats.sessionOf("c")))?.head.lastSeq;
    await reader.saveChat({ chatId: "c", messages: loaded });
    const isSettled = (await store.load(chats.sessionOf("c")))?.head.lastSeq === lastSeq;
    const whole = createMemoryStore();
    const writer = createChatStore({ store: whole });
    await writer.saveChat({ chatId: "c", messages: loaded });
    const isSame = JSON.stringify(own) === JSON.stringify(chat.messages) && foreign.join() === others.join();
    const isSent =
      JSON.stringify(await seenIn(store, chats.sessionOf("c"))) ===
      JSON.stringify(await seenIn(whole, writer.sessionOf("c")));
    if (!isSame || !isSettled || !isSent) return { seed, names, isSame, isSettled, isSent };
  }
  return null;
}

it(
  "keeps a chat as a file that is written whole, whatever is edited",
  { tags: ["slow"], timeout: 900_000 },
  async () => {
    const cases = testSize({ short: 60, long: 10_000 });
    const faults: object[] = [];
    for (let seed = 1; seed <= cases; seed++) {
      const fault = await faultOf(seed);
      if (fault !== null) faults.push(fault);
    }
    expect(faults).toEqual([]);
  },
);
