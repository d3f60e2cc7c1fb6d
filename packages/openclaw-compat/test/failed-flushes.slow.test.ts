import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { openSession, sessionRef } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { afterAll, describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import {
  buildFlushShim,
  countAsFlushed,
  flushesOf,
  flushPlace,
  type FailingFlushes,
} from "../../../tools/flush-shim.ts";
import { key, openStore, type StoreKind } from "./compat-fixture.ts";

interface Line {
  readonly is: string;
  readonly isOnDisk?: boolean;
  readonly code?: string;
}

const folder = mkdtempSync(join(tmpdir(), "mirror-flushes-"));
const shim = buildFlushShim(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
/** Also those that come after the message. */
const isFullSize = process.env["THROUGHLINE_FLUSHES"] === "all";
const worker = bundledWorker(new URL("./mirror-flush-worker.ts", import.meta.url));

async function run(kind: StoreKind, words: readonly string[], failing: FailingFlushes | null) {
  const place = flushPlace(mkdtempSync(join(folder, `${kind}-`)));
  {
    await using store = openStore(kind, place.folder);
    await openSession(store, sessionRef({ key }), { random: systemRandom });
    const message = { role: "user", content: "hi" };
    await store.append(sessionRef({ key }), [{ type: "message", message }]);
  }
  countAsFlushed(place);
  const child = spawn(process.execPath, [worker, kind, place.folder, ...words], {
    env: { ...process.env, ...shim.environment(place, failing) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  return { lines, flushes: flushesOf(place) };
}

describe.skipIf(shim.library === null)(
  `mirroring while flushes fail${shim.library === null ? ": needs a C compiler and Linux" : ""}`,
  () => {
    describe.each([["jsonl"], ["sqlite"]] as const)("of store-%s", (kind) => {
      it.each([
        ["with a key", ["n1"]],
        ["without a key", []],
        ["into an entry", ["entry"]],
      ] as const)(
        "%s: what is written is done only when it is on the disk, also when it is found there already",
        async (_name, words) => {
          const clean = await run(kind, words, null);
          expect(clean.lines).toEqual(Array.from({ length: 3 }, () => ({ is: "done", isOnDisk: true })));
          // The first ones are of the message itself.
          for (const from of isFullSize ? clean.flushes.map((_, index) => index + 1) : [1, 2]) {
            // One flush alone, and all four attempts of one call; in the short tier the one first, then the other.
            for (const until of isFullSize ? [from, from + 4] : [from === 1 ? from : from + 4]) {
              const { lines, flushes } = await run(kind, words, { from, until });
              const label = JSON.stringify({ kind, from, until, lines, flushes });
              for (const { is, isOnDisk, code } of lines) {
                if (is === "done") expect(isOnDisk, label).toBe(true);
                else expect(code, label).toMatch(/^STORE_/);
              }
            }
          }
        },
      );
    });
  },
);
