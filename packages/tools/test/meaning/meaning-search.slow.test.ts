import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { type EmbeddingServer, startEmbeddingServer } from "@throughline/test-kit/embedding-server";
import { askFor, converse, embedderAt, filled, indexOver, refOf, removeFolder, storeKinds } from "./meaning-scene.ts";

let server: EmbeddingServer;
beforeAll(async () => void (server = await startEmbeddingServer()));
beforeEach(async () => server.control({}));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  removeFolder();
});

const trip = [
  ["Where did we get the bicycles?", "We rented two bicycles from the shop at the harbor."],
  ["What did the physician say?", "Rest for a week."],
] as const;
const work = [
  ["Why was the site down?", "The database crashed after the migration."],
  ["Fine.", "The report goes out on Monday."],
] as const;

async function asked(open: () => SessionStore): Promise<SessionStore> {
  const store = open();
  await converse(store, refOf("trip"), trip);
  await converse(store, refOf("work"), work);
  await store.save(refOf("asking"), { sessionId: "asking" }, { ifRevision: null });
  return store;
}

describe.each(storeKinds)("a search by meaning over %s", (_name, open) => {
  it("finds what shares no word with the question", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    expect((await askFor(store, undefined, "hire cycling")).places).toEqual([]);
    expect(await filled(index)).toBe(0);
    const { places, isWhole } = await askFor(store, index, "hire cycling");
    expect([places[0], isWhole]).toEqual(["trip#1", true]);
    expect((await askFor(store, index, "Arzt")).places[0]).toBe("trip#3");
    expect((await askFor(store, index, "storage outage")).places[0]).toBe("work#1");
  });

  it("keeps what words find in front of what is a little near", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    expect((await askFor(store, index, "Monday report")).places[0]).toBe("work#3");
  });

  it("neither finds nor counts a session that is not wanted", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    await converse(store, refOf("late"), [["And the bikes?", "They were rented."]]);
    const question = { text: "hire cycling", ref: refOf("asking"), reach: "agent", contextFromSeq: Infinity } as const;
    const near = (name: string): ReturnType<typeof index.nearest> =>
      index.nearest({
        ...question,
        isWanted: async (_, id) => id.endsWith(name),
        signal: new AbortController().signal,
      });
    const trip = await near("trip");
    expect([new Set(trip.hits.map(({ sessionId }) => sessionId)), trip.notes]).toEqual([new Set(["main-trip"]), []]);
    expect(await near("late")).toEqual({
      hits: [],
      notes: ["2 records have no vector yet and were compared by words only"],
    });
  });

  it("finds words alone, and says so, when the embedder fails, answers wrongly, or is gone", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    for (const fault of ["429", "500", "nan", "short", "html", "reset"] as const) {
      await server.control({ fault });
      const { places, isWhole, content } = await askFor(store, index, "report bicycles");
      expect([places.length > 0, isWhole], fault).toEqual([true, false]);
      expect(content, fault).toContain("[only words were compared: ");
    }
  });

  it("waits 1.5 s for the vector of the question, and no longer", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    await server.control({ slowMs: 4000 });
    const startedMs = performance.now();
    const { places, isWhole, content } = await askFor(store, index, "Monday report");
    const tookMs = performance.now() - startedMs;
    expect([places[0], isWhole]).toEqual(["work#3", false]);
    expect(content).toContain("gave no vector within 1500 ms");
    expect(tookMs).toBeGreaterThan(1400);
    expect(tookMs).toBeLessThan(3000);
  });

  it("says how many records were compared by words only while vectors are missing", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    const before = await askFor(store, index, "report");
    expect([before.isWhole, before.places]).toEqual([false, ["work#3"]]);
    expect(before.content).toContain("[8 records have no vector yet and were compared by words only]");
    await filled(index);
    await converse(store, refOf("new"), [["And dinner?", "At the harbor."]]);
    expect((await askFor(store, index, "report")).content).toContain("[2 records have no vector yet");
  });

  it("does not count what the context of the caller holds", async () => {
    await using store = await asked(open);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    await converse(store, refOf("asking"), [["Which report?", "The one of Monday."]]);
    expect(await askFor(store, index, "report", { reach: "self" })).toMatchObject({ isWhole: true });
    expect(await askFor(store, index, "report")).toMatchObject({ isWhole: true });
  });

  it("reaches no other agent, no other namespace, no other session of the agent, and no archived one", async () => {
    await using store = await asked(open);
    const others = [refOf("trip", "other"), refOf("trip", "main", "tenant"), refOf("old")];
    for (const ref of others) await converse(store, ref, [["Where?", "We rented bicycles at the station."]]);
    const embedder = embedderAt(server.url);
    for (const { namespace, agentId } of [...others, refOf("trip")])
      await filled(indexOver(store, embedder, { scope: { namespace, agentId } }));
    await store.move(refOf("old"), { kind: "archive" });
    const index = indexOver(store, embedder);
    const found = await askFor(store, index, "hire cycling", { limit: 20 });
    expect(found.places[0]).toBe("trip#1");
    expect(found.places.filter((place) => place.startsWith("old"))).toEqual([]);
    expect(found.content).not.toContain("station");
    const own = await askFor(store, index, "hire cycling", { reach: "self", limit: 20 });
    expect(own.places).toEqual([]);
    const other = await askFor(store, index, "hire cycling", { ref: refOf("asking", "other"), limit: 20 });
    expect(other.content).toContain("station");
    expect(other.content).not.toContain("harbor");
  });
});
