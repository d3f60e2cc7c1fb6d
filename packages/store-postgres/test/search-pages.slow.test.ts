import type { RecordDraft, SearchHit, SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { newSchema } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const limit = 20;
/** Of every ten records that hold both words one has them in order: of a page of 50 candidates five are hits. */
const everyTenth = 10;

function refOf(name: string): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:${name}` };
}

/** All rank alike, so that the newest come first. */
function drafts(count: number): RecordDraft[] {
  return Array.from({ length: count }, (_, index) => {
    const content = (index + 1) % everyTenth === 0 ? "alpha beta" : "beta alpha";
    return { type: "message", message: { role: "user", content } };
  });
}

async function filled(store: PostgresStore, names: readonly string[], count: number): Promise<void> {
  for (const name of names) {
    await store.save(refOf(name), { sessionId: name }, { ifRevision: null });
    await store.append(refOf(name), drafts(count));
  }
}

/** The hits, with something done in between, once the first page of candidates was shown. */
async function hitsAround(store: PostgresStore, between: () => Promise<void>): Promise<string[]> {
  const hits: SearchHit[] = [];
  for await (const hit of store.search?.search({ text: '"alpha beta"', limit }) ?? expect.unreachable("no search")) {
    hits.push(hit);
    if (hits.length === 4) await between();
  }
  return hits.map(({ sessionId, seq }) => `${sessionId} ${seq}`);
}

describe.skipIf(url === "")(
  `the pages of a search${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("repeat no hit when records are added meanwhile, and skip none when others are purged", async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await filled(store, ["old", "new"], 100);
      const wanted = ["new", "old"].flatMap((name) =>
        Array.from({ length: 10 }, (_, index) => `${name} ${100 - index * everyTenth}`),
      );
      expect(await hitsAround(store, () => Promise.resolve())).toEqual(wanted);
      const added = await hitsAround(store, async () => {
        await filled(store, ["newest"], 120);
        // Whoever searches has them indexed.
        expect(await hitsAround(store, () => Promise.resolve())).toHaveLength(limit);
      });
      expect(added).toEqual(wanted);
      // The session that comes first goes, and with it 120 candidates from the beginning: what was fetched of it is shown.
      const purged = await hitsAround(store, () => store.remove(refOf("newest"), { purge: true }));
      const fetched = [120, 110, 100, 90, 80].map((seq) => `newest ${seq}`);
      expect(purged).toEqual([...fetched, ...wanted.slice(0, limit - fetched.length)]);
    });

    it("go on where the one before ended, among ranks of many digits", async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await store.save(refOf("one"), { sessionId: "one" }, { ifRevision: null });
      const words = (count: number): string => Array.from({ length: count }, (_, index) => `w${index}`).join(" ");
      const told = Array.from({ length: 400 }, (_, index) => {
        const inOrder = index % everyTenth === 0 ? "alpha beta" : "beta alpha";
        return { type: "message", message: { role: "user", content: `${inOrder} ${words(index % 97)}` } };
      });
      await store.append(refOf("one"), told);
      const search = async (most: number): Promise<number[]> => {
        const hits = await Array.fromAsync(store.search?.search({ text: '"alpha beta"', limit: most }) ?? []);
        return hits.map(({ seq }) => seq);
      };
      const atOnce = await search(1000);
      expect(atOnce).toHaveLength(told.length / everyTenth);
      expect(await search(limit)).toEqual(atOnce.slice(0, limit));
    });
  },
);
