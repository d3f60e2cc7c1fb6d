import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { resetSession, systemRandom } from "@throughline/core/internal";
import type { SessionRef, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { receiptOf } from "../src/import-receipt.ts";
import {
  exported,
  fixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  recordsOf,
  sessionId,
  type FixtureFolder,
} from "./fixture-folder.ts";

const main: SessionRef = { namespace: "", agentId: "main", key: "agent:main:main" };
const imported: SessionRef = { ...main, key: `agent:main:import:direct:${sessionId}` };
const foreign = `${jsonLines(header, message("a", null), "{broken", message("a", "a"), { type: "user", content: "flat", ts: 1.5 })}{"half`;
const texts = (...ids: readonly string[]): { type: string; id: string; message: object }[] =>
  ids.map((id) => ({ type: "message", id, message: { role: "user", content: id } }));

/** A directory of a JSON Lines store with an imported session, one of its own that was reset, and one without records. */
async function filledStore(folder: FixtureFolder): Promise<void> {
  writeFileSync(folder.at("x.jsonl"), foreign);
  await using store = createJsonlStore({ root: folder.at("store"), create: true });
  await importAll(store, folder.at("x.jsonl"));
  await store.save(main, { sessionId: "first", sendPolicy: "deny" }, { ifRevision: null });
  await store.append(main, texts("a", "b"));
  await resetSession(store, main, { random: systemRandom, keep: () => ({ label: "kept" }) });
  await store.append(main, texts("c", "d"), { entry: { label: "by an append", gone: 1 } });
  await store.append(main, texts("e"), { windowFromSeq: 2, entry: { gone: undefined } });
  await store.append(main, [], { rewindTo: "c" });
  await store.save(
    { ...main, key: "agent:main:empty" },
    { sessionId: "empty", sendPolicy: "deny" },
    { ifRevision: null },
  );
}

async function picture(store: SessionStore): Promise<unknown> {
  const { sessions } = await store.list({ state: "any", sort: "key" });
  return Promise.all(
    sessions.map(async ({ ref, sessionId: id, archived, entry, head }) => {
      const { importedFrom: _receipt, updatedAt: _updatedAt, sessionFile: _file, ...fields } = entry;
      const records = await recordsOf(store, ref);
      return {
        ref,
        id,
        archived,
        fields,
        head,
        records: records.map(({ seq, id: recordId, source, record, isSourceCanonical }) => [
          seq,
          recordId,
          source,
          record,
          isSourceCanonical,
        ]),
      };
    }),
  );
}

describe("a JSON Lines store of ours", () => {
  it(
    "is imported with seq, lines, entries, heads and archives; a second run adds nothing",
    { tags: ["slow"] },
    async () => {
      using folder = fixtureFolder();
      await filledStore(folder);
      const store = createMemoryStore();
      const before = folder.state();
      const sources = await importAll(store, folder.at("store"));
      expect(sources.filter(({ error }) => error !== null)).toEqual([]);
      expect(
        sources.every(
          ({ format, lines, records, lost }) => format === "jsonl" && lines === records && lost.length === 0,
        ),
      ).toBe(true);
      expect((await importAll(store, folder.at("store"))).map(({ state, records }) => [state, records])).toEqual(
        sources.map(() => ["unchanged", 0]),
      );
      // Before the store itself is opened: that may write what it derives.
      expect(folder.state()).toEqual(before);
      await using origin = createJsonlStore({ root: folder.at("store") });
      expect(await picture(store)).toEqual(await picture(origin));
      for (const ref of [main, imported, { ...main, key: "agent:main:empty" }]) {
        // The header states when the store made the session.
        const lines = async (one: SessionStore): Promise<string[]> =>
          (await exported(one, ref, "jsonl")).replace(/^(.*"timestamp":")[^"]*(".*"_tl":.*)/, "$1$2").split("\n");
        expect(await lines(store)).toEqual(await lines(origin));
      }
      expect(await exported(store, imported, "jsonl")).toBe(foreign);
    },
  );

  it("takes in what the store has gained", async () => {
    using folder = fixtureFolder();
    await filledStore(folder);
    const store = createMemoryStore();
    await importAll(store, folder.at("store"));
    {
      await using origin = createJsonlStore({ root: folder.at("store") });
      await origin.append(main, texts("f"));
    }
    expect(
      (await importAll(store, folder.at("store")))
        .filter(({ state }) => state === "grown")
        .map(({ key, records }) => [key, records]),
    ).toEqual([[main.key, 1]]);
    expect((await store.load(main))?.head).toMatchObject({ headId: "f", lastSeq: 4 });
  });

  it("of which other tenants are named and left alone", async () => {
    using folder = fixtureFolder();
    {
      await using origin = createJsonlStore({ root: folder.at("store"), create: true });
      for (const namespace of ["", "tenant"]) {
        await origin.save({ ...main, namespace }, { sessionId: "one" }, { ifRevision: null });
        await origin.append({ ...main, namespace }, texts("a"));
      }
    }
    const store = createMemoryStore();
    expect((await importAll(store, folder.at("store"))).map(({ path, state }) => [path, state])).toEqual([
      [folder.at("store/agents/main/sessions/one.jsonl"), "imported"],
      [folder.at("store/namespaces"), "skipped"],
    ]);
    const [tenant] = await importAll(store, folder.at("store/namespaces/tenant"), { namespace: "tenant" });
    expect(tenant).toMatchObject({ state: "imported", records: 1 });
    expect((await store.load({ ...main, namespace: "tenant" }))?.head.lastSeq).toBe(1);
  });

  it("lends a single file: seq and lines stay, the header's key is used", async () => {
    using folder = fixtureFolder();
    await filledStore(folder);
    const path = folder.at("store/agents/main/sessions/first.jsonl");
    const archived = Object.keys(folder.state()).find((name) => name.includes("first.jsonl"));
    const [source] = await importAll(createMemoryStore(), archived === undefined ? path : folder.at(archived));
    expect(source).toMatchObject({ format: "jsonl", sessionId: "first", records: 2, error: null });
  });

  it("gives one session the receipt of both imports", async () => {
    using folder = fixtureFolder();
    await filledStore(folder);
    const store = createMemoryStore();
    await importAll(store, folder.at("store"));
    const receipt = receiptOf((await store.load(imported))?.entry ?? { sessionId });
    expect(receipt?.format).toBe("jsonl");
    expect(receipt?.earlier).toMatchObject({ path: folder.at("x.jsonl"), format: "pi" });
  });
});
