import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { listCheckpoints } from "@throughline/checkpoint";
import { openSession, sessionRef } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { createPostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { newSchema } from "./store-under-test.ts";

const file = bundledWorker(new URL("./make-checkpoint.ts", import.meta.url));

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

/** Where the node that began is killed, and what is left to the next one. */
const ends: readonly (readonly [string, string])[] = [
  ["while it is written", "written"],
  ["before its append", "written"],
  // The server has it: nobody makes it again.
  ["before the answer", "nothing-new"],
];

interface Node {
  readonly child: ChildProcess;
  readonly lines: AsyncIterableIterator<string>;
}

function startNode(schema: string, keys: readonly string[], stopAt: string, aheadMs: number): Node {
  const child = spawn(process.execPath, [file, url, schema, keys.join(","), stopAt, String(aheadMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
}

/** What each session got, by its key. */
async function madeBy({ lines }: Node): Promise<Readonly<Record<string, string>>> {
  const made: Record<string, string> = {};
  for await (const line of lines) {
    const said = JSON.parse(line) as { readonly key: string; readonly made: string };
    made[said.key] = said.made;
  }
  return made;
}

describe.skipIf(url === "")(
  `checkpoints of many nodes${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("a node killed in the middle of a checkpoint, wherever: another one finishes it, once", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2 });
      const keys = ends.map((_end, index) => `agent:main:job-${index}`);
      for (const key of keys) {
        const ref = sessionRef({ key });
        await openSession(store, ref, { random: systemRandom });
        await store.append(ref, [{ type: "message", message: { role: "user", content: "Use JSON Lines." } }]);
      }
      const killed = ends.map(([stopAt], index) => startNode(schema, [keys[index] ?? ""], stopAt, 0));
      for (const [index, { child, lines }] of killed.entries()) {
        expect(JSON.parse((await lines.next()).value ?? "null")).toEqual({ reached: ends[index]?.[0] });
        child.kill("SIGKILL");
        await once(child, "close");
      }
      // As long as the claims of the dead are believed, nobody begins another; one has reached the log all the same.
      const early = await madeBy(startNode(schema, keys, "", 0));
      expect(Object.values(early)).toEqual(["in-the-making", "in-the-making", "nothing-new"]);
      // Then two come at once.
      const both = await Promise.all([1, 2].map(() => madeBy(startNode(schema, keys, "", 130_000))));
      for (const [index, key] of keys.entries()) {
        const results = both.map((made) => made[key]);
        expect(results.filter((made) => made === "written")).toHaveLength(ends[index]?.[1] === "written" ? 1 : 0);
        expect(results.every((made) => /^(written|in-the-making|nothing-new)$/.test(made ?? ""))).toBe(true);
        const found = await listCheckpoints(store, sessionRef({ key }));
        expect(found.map(({ summary }) => summary)).toEqual(["They settled on JSON Lines for the importer."]);
      }
    }, 180_000);
  },
);
