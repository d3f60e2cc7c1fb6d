import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { contend, seededNumbers } from "./contention.ts";
import { findEntryProblems, findViewProblems } from "./contention-checks.ts";
import { countFaults } from "./fault-counts.ts";
import { storeWithSession } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("eight processes, some of them killed", () => {
  it(
    "at work on the entries leave what one would have left that does a thing at a time, and sessions.json says the same [LCK-14, LCK-16, TST-01]",
    { timeout: 240_000 },
    async (context) => {
      const root = newFolder();
      await (await storeWithSession(root, { sessionsJson: true })).close();
      const seed = Math.floor(Math.random() * 1_000_000);
      const operations = await contend({
        root,
        what: "entries",
        processes: 8,
        killsEach: 1,
        operationsEach: 30,
        random: seededNumbers(seed),
      });
      const store = createJsonlStore({ root, sessionsJson: true });
      expect(await findEntryProblems(store, operations), `seed ${seed}`).toEqual([]);
      expect(await findViewProblems(store, root), `seed ${seed}`).toEqual([]);
      expect(operations.filter(({ got }) => got !== null).length).toBeGreaterThanOrEqual(8 * 31);
      countFaults(context, { kills: 8 });
    },
  );
});
