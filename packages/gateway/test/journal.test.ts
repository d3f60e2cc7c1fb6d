import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@throughline/core/internal";
import { afterEach, expect, it } from "vitest";
import { Journal } from "../src/journal.ts";
import type { JournaledCall } from "../src/journal-entry.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-spool-"));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("a file that cannot be removed once its call is stored is reported, and the next one is stored", async () => {
  const [stored, left]: [string[], string[]] = [[], []];
  const journal = await Journal.open({
    folder,
    mostBytes: 1e6,
    keepsFailed: true,
    clock: systemClock,
    record: async ({ call }) => {
      stored.push(call.recordId);
      if (stored.length > 1) return true;
      // What stands in its place cannot be removed, as a file in the folder of another user.
      for (const name of readdirSync(folder)) {
        rmSync(join(folder, name));
        mkdirSync(join(folder, name));
      }
      return true;
    },
    onRemoved: () => {},
    onDropped: () => {},
    isAway: () => false,
    isBusy: () => false,
    onFailed: (_error, file) => void left.push(`failed ${file}`),
    onLeft: (_error, file) => void left.push(file),
  });
  const call = (recordId: string): JournaledCall =>
    ({
      scope: { namespace: "", agentId: "main", tokenId: "t" },
      session: null,
      headers: {},
      mayWrite: false,
      call: { recordId, startedMs: 1 },
      body: Buffer.from("{}"),
      reply: null,
      rebuilt: null,
    }) as unknown as JournaledCall;
  await journal.append(call("call-1"), null);
  await expect.poll(() => journal.isWaiting).toBe(false);
  await journal.append(call("call-2"), null);
  await expect.poll(() => journal.isWaiting).toBe(false);
  expect([stored, left]).toEqual([["call-1", "call-2"], [expect.stringMatching(/^0.*call-1\.call$/)]]);
  expect(journal.bytes).toBe(0);
  await journal.close();
});
