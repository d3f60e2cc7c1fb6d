import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSdkConversation } from "@throughline/adapter-claude-agent-sdk";
import { openSession, sessionRef } from "@throughline/core";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { scriptedAgent } from "./scripted-agent.ts";

const ref = sessionRef({ key: "agent:main:discord:direct:7" });
const stores = {
  memory: () => createMemoryStore(),
  sqlite: (folder: string) => createSqliteStore({ path: join(folder, "sessions.db"), create: true }),
};

describe.each(Object.entries(stores))("the id of the SDK's session, in a %s store", (_kind, open) => {
  it("is stored with the entry, which keeps its other fields and moves its time", async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-sdk-"));
    try {
      await using store = open(folder);
      const entry = { label: "Work", modelOverride: "m", unknown: { of: ["another", "program"] } };
      await openSession(store, ref, { random: systemRandom, entry });
      const conversation = createSdkConversation({ store, ref, query: scriptedAgent(join(folder), []) });
      const ids: unknown[] = [];
      let before = await store.load(ref);
      for (const text of ["hello", "again"]) {
        await systemClock.sleep(5);
        await conversation.send(text);
        const after = await store.load(ref);
        ids.push(after?.entry["sdkSessionId"]);
        expect(after?.entry).toMatchObject(entry);
        expect(after?.revision).toBeGreaterThan(before?.revision ?? Infinity);
        expect(after?.updatedAtMs).toBeGreaterThan(before?.updatedAtMs ?? Infinity);
        expect(after?.entry.updatedAt).toBe(after?.updatedAtMs);
        before = after;
      }
      expect(ids).toEqual(["sdk-1", "sdk-1-2"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
