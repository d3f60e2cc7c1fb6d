import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SessionStore } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attempts, fill, overviews, refOf, secret, serve } from "./memory-clients.ts";

const mine = refOf("main", "mine");
const shared = refOf("main", "shared-1");
const theirs = refOf("work", "theirs");
const opaque = { namespace: "", agentId: "work", key: "opaque" };
const elsewhere = refOf("main", "mine-too", "other");
/** A foreign program may store a key that names an agent under another one. */
const hidden = [theirs, opaque, elsewhere];

async function filled(store: SessionStore): Promise<SessionStore> {
  await fill(store, mine, ["a violin", "indeed"]);
  await fill(store, shared, ["a violin as well"]);
  for (const ref of hidden) await fill(store, ref, [`the ${secret} of ${ref.key}`], { label: `${secret} label` });
  return store;
}

describe.each(["memory", "SQLite"])("over a store of %s", (kind) => {
  const withStore = async (work: (store: SessionStore) => Promise<void>): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-mcp-"));
    await using store = kind === "memory" ? createMemoryStore() : createSqliteStore({ path: join(folder, "s.db") });
    try {
      await work(await filled(store));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };

  it("reaches no other agent and namespace, whatever a call names", { tags: ["slow"] }, async () => {
    await withStore(async (store) => {
      const serving = await serve(store, {});
      const missing = (await serving.call("read_session", { key: refOf("work", "nothing").key })).text;
      for (const { key, agentId } of hidden)
        for (const agent of [undefined, agentId, "work", "main", "*", "", "../work"]) {
          if (agent === "") continue;
          const texts = await attempts(serving, key, agent);
          expect(texts.join("\n")).not.toContain(secret);
          // What is not seen is answered as what is not there.
          expect(texts[0]).toBe(missing);
        }
      expect(await overviews(serving)).not.toMatch(/xylophone|theirs|opaque|mine-too/);
      expect((await serving.call("search_sessions", { query: "violin" })).structured["hits"]).toHaveLength(2);
    });
  });

  it("sees all agents of the namespace where that is configured, and no other namespace", async () => {
    await withStore(async (store) => {
      const serving = await serve(store, { agents: "*" });
      const found = await serving.call("search_sessions", { query: secret });
      expect(found.structured["hits"]).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ key: theirs.key }),
          expect.objectContaining({ key: "opaque", agent: "work" }),
        ]),
      );
      expect(found.structured["hits"]).toHaveLength(2);
      expect((await serving.call("read_session", { key: "opaque", agent: "work" })).text).toContain(secret);
      expect((await serving.call("read_session", { key: "opaque" })).isError).toBe(true);
      const { resources } = await serving.client.listResources();
      for (const { uri } of resources) await serving.client.readResource({ uri });
      expect(resources).toHaveLength(4);
      expect(await overviews(serving)).not.toContain("mine-too");
    });
  });

  it("sees the agents that are named, one list after the other", async () => {
    await withStore(async (store) => {
      const third = refOf("third", "secret");
      await fill(store, third, [`the ${secret} of third`]);
      const serving = await serve(store, { agents: ["main", "work"] });
      expect((await attempts(serving, third.key)).join("\n")).not.toContain(secret);
      const keys: string[] = [];
      let cursor: unknown;
      do {
        const { structured } = await serving.call("list_sessions", { limit: 1, ...(cursor ? { cursor } : {}) });
        keys.push(...(structured["sessions"] as { key: string }[]).map(({ key }) => key));
        cursor = structured["nextCursor"];
      } while (cursor);
      expect(keys.toSorted()).toEqual([mine.key, shared.key, theirs.key, "opaque"].toSorted());
    });
  });

  it("sees only keys with an allowed beginning", async () => {
    await withStore(async (store) => {
      const keyPrefixes = ["agent:main:cli:direct:shared", "agent:main:cli:direct:shared-1"];
      const serving = await serve(store, { keyPrefixes, agents: "*" });
      expect((await serving.call("search_sessions", { query: "violin" })).structured["hits"]).toHaveLength(1);
      expect((await serving.call("read_session", { key: mine.key })).isError).toBe(true);
      for (const prefix of ["", "agent:main:", "agent:main:cli:direct:shared-1", "agent:main:cli:direct:m"]) {
        const { structured } = await serving.call("list_sessions", { prefix });
        const keys = (structured["sessions"] as { key: string }[]).map(({ key }) => key);
        expect(keys).toEqual(prefix.endsWith(":m") ? [] : [shared.key]);
      }
      expect(await overviews(serving)).not.toMatch(/xylophone|direct:mine/);
    });
  });

  it("refuses cursors of other lists and places that nobody gave", async () => {
    await withStore(async (store) => {
      const wide = await serve(store, { agents: "*" });
      const narrow = await serve(store, {});
      const { structured } = await wide.call("list_sessions", { limit: 1 });
      const forge = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      const [, inner] = JSON.parse(Buffer.from(String(structured["nextCursor"]), "base64url").toString()) as unknown[];
      for (const cursor of [structured["nextCursor"], forge([0, inner]), forge([0, "x"]), forge([-1, null]), "x", ""]) {
        const answer = await narrow.call("list_sessions", { cursor });
        expect(answer.text).not.toMatch(/xylophone|theirs|opaque|mine-too/);
        expect(answer.isError || answer.text === "[No sessions.]").toBe(true);
      }
      // A part that there is not is behind the end.
      expect((await narrow.call("list_sessions", { cursor: forge([7, null]) })).text).toBe("[No sessions.]");
      for (const cursor of [`0.${forge([0, inner])}`, "99.x", "x", `-1.${forge([0, null])}`, "0."])
        await expect(narrow.client.request({ method: "resources/list", params: { cursor } })).rejects.toThrow();
    });
  });

  it("changes nothing, and offers notes only where they are allowed", async () => {
    await withStore(async (store) => {
      const before = JSON.stringify(await store.list({ state: "any", sort: "key" }));
      const serving = await serve(store, {});
      expect((await serving.client.listTools()).tools.map(({ name }) => name)).not.toContain("add_note");
      await expect(serving.call("add_note", { topic: "t", text: "x" })).rejects.toThrow("not found");
      await overviews(serving);
      expect(JSON.stringify(await store.list({ state: "any", sort: "key" }))).toBe(before);
      // A token may be for other agents than the one whose notes the server keeps.
      const foreign = await serve(store, { agents: ["work"], allowNotes: true });
      expect(await foreign.call("add_note", { topic: "t", text: "x" })).toMatchObject({ isError: true });
      const own = await serve(store, { allowNotes: true });
      await own.call("add_note", { topic: "instruments", text: "a violin" });
      expect((await own.call("read_memory")).text).toContain("instruments");
      expect((await foreign.call("read_memory")).text).toBe("[No notes yet.]");
    });
  });
});
