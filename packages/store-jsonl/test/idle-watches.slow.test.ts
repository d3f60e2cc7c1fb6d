import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import type { SessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const refOf = (index: number): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:w:${index}` });

describe("watches of many sessions", () => {
  it.each([
    {
      name: "where the kernel reports changes",
      followFolder: nodeFiles.followFolder?.bind(nodeFiles) ?? (() => null),
      atOnce: 100,
    },
    { name: "where it reports none", followFolder: () => null, atOnce: 500 },
  ])(
    "look at a bounded number of files while nothing happens, and hear of what another handle writes: $name",
    { timeout: 60_000 },
    async ({ followFolder, atOnce }) => {
      const root = newFolder();
      const count = 700;
      const writer = createJsonlStore({ root, sessionsJson: false });
      for (let index = 0; index < count; index++)
        await writer.save(refOf(index), { sessionId: `s${index}` }, { ifRevision: null, durability: "process" });
      let looks = 0;
      let opened = 0;
      const files = {
        ...nodeFiles,
        followFolder,
        facts: (path: string) => ((looks += 1), nodeFiles.facts(path)),
        open: (...given: Parameters<typeof nodeFiles.open>) => ((opened += 1), nodeFiles.open(...given)),
      };
      const store = createJsonlStore({ root, files, sessionsJson: false });
      const controller = new AbortController();
      const seen: string[] = [];
      const watches = Array.from({ length: count }, async (_, index) => {
        for await (const { records } of store.watch?.watch(refOf(index), { afterSeq: 0, signal: controller.signal }) ??
          [])
          seen.push(...records.map(({ seq }) => `${index}:${seq}`));
      });
      // So many files ten times a second, whatever the number of watches: once all have begun, which takes a busy machine longer.
      const aSecond = 1.2 * 10 * (process.platform === "linux" ? atOnce : 500);
      let [asked, opens] = [Infinity, Infinity];
      for (let waited = 0; (asked > aSecond || opens > 0) && waited < 40; waited++) {
        const before = [looks, opened] as const;
        await pause(1000);
        [asked, opens] = [looks - before[0], opened - before[1]];
      }
      expect(asked).toBeLessThanOrEqual(aSecond);
      expect(opens).toBe(0);
      for (const index of [0, 77, 699])
        await writer.append(refOf(index), [{ type: "message", message: { role: "user", content: "hi" } }]);
      for (let waited = 0; seen.length < 3 && waited < 500; waited++) await pause(20);
      expect(seen.toSorted()).toEqual(["0:1", "699:1", "77:1"]);
      controller.abort();
      await Promise.all(watches);
      await store.close();
      await writer.close();
    },
  );
});
