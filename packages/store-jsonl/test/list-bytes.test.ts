import { sessionRef, type ListQuery, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { expect, it } from "vitest";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const pageBytes = 10_000;
/** Sessions of each agent have entries of these sizes, the largest above a page. */
const sizes = [3000, 30_000, 100, 4500, 4500, 200, 12_000, 50, 8000] as const;

async function fill(root: string): Promise<void> {
  await using store = createJsonlStore({ root });
  for (const agentId of ["one", "three", "two"]) {
    for (const [index, size] of sizes.entries()) {
      const ref = sessionRef({ agentId, key: `agent:${agentId}:s${index}` });
      const entry = {
        sessionId: `${agentId}-${index}`,
        updatedAt: 1e12 + ((index * size) % 7),
        text: "x".repeat(size),
      };
      await store.save(ref, entry, { ifRevision: null });
      if (index % 4 === 0) await store.move(ref, { kind: "archive" });
      else if (index % 3 === 0) await store.append(ref, [], { entry: { label: "patched" } });
    }
  }
}

interface Listed {
  readonly ids: readonly string[];
  readonly largestPage: number;
}

async function listed(store: SessionStore, query: ListQuery): Promise<Listed> {
  const ids: string[] = [];
  let largestPage = 0;
  for (let cursor: string | null = null; ;) {
    const page = await store.list({ ...query, limit: 1000, ...(cursor === null ? {} : { cursor }) });
    const entries = page.sessions.map(({ entry }) => JSON.stringify(entry).length);
    largestPage = Math.max(
      largestPage,
      entries.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0),
    );
    ids.push(...page.sessions.map(({ sessionId }) => sessionId));
    if (page.nextCursor === null) return { ids, largestPage };
    cursor = page.nextCursor;
  }
}

it.each([true, false])("pages of several agents end by bytes and hold every session once, index: %s", async (index) => {
  const root = newFolder();
  await fill(root);
  await using whole = createJsonlStore({ root, index });
  for (const state of ["active", "archived", "any"] as const) {
    for (const sort of ["updated", "key"] as const) {
      // Each list has a handle of its own, because a handle remembers what it read.
      await using store = createJsonlStore({ root, index, limits: { pageBytes } });
      const { ids, largestPage } = await listed(store, { state, sort });
      expect(ids).toEqual((await listed(whole, { state, sort })).ids);
      expect(largestPage).toBeLessThan(pageBytes);
    }
  }
});
