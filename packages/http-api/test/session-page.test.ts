import { expect, it } from "vitest";
import { sessionRef, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { mostScanned, sessionPage } from "../src/routes/session-page.ts";

const count = 2300;

async function filledStore(sessions: number): Promise<SessionStore> {
  const store = createMemoryStore();
  for (let at = 0; at < sessions; at++) {
    const entry = { sessionId: `s${at}`, title: titleOf(at) };
    await store.save(sessionRef({ key: `agent:main:k${String(at).padStart(5, "0")}` }), entry, { ifRevision: null });
  }
  return store;
}

/** A page of the store holds 100 sessions: many of them are wanted here, few there, and none in the middle. */
function titleOf(at: number): string {
  return (at < 350 && at % 3 === 0) || at === 2250 ? "wanted" : "other";
}

it(
  "finds each wanted session once, in pages that are never too long and never look at too many",
  { tags: ["slow"] },
  async () => {
    const store = await filledStore(count);
    const found: string[] = [];
    let cursor: string | null = null;
    let [pages, scanned, leftOut] = [0, 0, 0];
    do {
      const page = await sessionPage(store, {
        query: { sort: "key" },
        isWanted: ({ title }) => title === "wanted",
        limit: 7,
        cursor,
        text: async ({ sessionId }) => sessionId,
      });
      expect(page.items.length).toBeLessThanOrEqual(7);
      expect(page.scanned).toBeLessThan(mostScanned + 100);
      found.push(...page.items);
      cursor = page.nextCursor;
      pages += 1;
      scanned += page.scanned;
      leftOut += page.leftOut;
    } while (cursor !== null);
    const wanted = Array.from({ length: count }, (_, at) => at).filter((at) => titleOf(at) === "wanted");
    expect(found).toEqual(wanted.map((at) => `s${at}`));
    expect([scanned, leftOut]).toEqual([count, count - wanted.length]);
    expect(pages).toBeLessThan(25);
  },
);

it("ends a page of large items before the answer is too long", async () => {
  const request = { query: { sort: "key" }, isWanted: null, limit: 1000, cursor: null } as const;
  const page = await sessionPage(await filledStore(250), { ...request, text: async () => "x".repeat(100_000) });
  expect(page.items.length).toBeLessThan(200);
  expect([page.scanned, page.leftOut]).toEqual([page.items.length, 0]);
  expect(page.nextCursor).not.toBe(null);
});
