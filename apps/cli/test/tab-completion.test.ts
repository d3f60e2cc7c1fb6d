import { type SessionStore, sessionRef } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { findCompletion, findOrNone } from "../src/chat/files/find-completion.ts";
import { type ArgumentContext, sessionChoices } from "../src/chat/repl-arguments.ts";

const commands = [{ name: "switch", help: "go to another", arguments: sessionChoices }];

/** Completes with the sessions of a store, of which only the parts that a completion reads are given. */
function finderOf(store: SessionStore): ReturnType<typeof findCompletion> {
  const scope = { namespace: "", agentId: "main" };
  const repl = {
    context: { scope, signal: new AbortController().signal },
    conversation: { store, ref: sessionRef({ key: "agent:main:here" }) },
  };
  return findCompletion(commands, async () => [], repl as unknown as ArgumentContext);
}

describe("Tab behind a command", () => {
  it("reads the first words of the rows below the prompt only, among the keys that begin as typed", async () => {
    await using store = createMemoryStore();
    for (let at = 0; at < 30; at++) {
      const ref = sessionRef({ key: `agent:main:${at % 2 === 0 ? "even" : "odd"}${at}` });
      await store.save(ref, { sessionId: `s${at}` }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: `words ${at}` } }]);
    }
    const read: string[] = [];
    const seen = {
      list: store.list.bind(store),
      read: (...given: Parameters<SessionStore["read"]>) => {
        read.push(given[0].key);
        return store.read(...given);
      },
    };
    const found = await finderOf(seen as unknown as SessionStore)("/switch agent:main:e");
    expect(found?.choices.length).toBe(15);
    expect(found?.choices[0]?.help).toMatch(/^"words \d+"$/);
    expect(read.length).toBe(6);
    expect(read.every((key) => key.startsWith("agent:main:even"))).toBe(true);
  });

  it("completes nothing when the store cannot be read", async () => {
    const store = createMemoryStore();
    await store.close();
    const find = finderOf(store);
    await expect(find("/switch a")).rejects.toMatchObject({ code: "STORE_CLOSED" });
    expect(await findOrNone(find, "/switch a")).toBeNull();
  });
});
