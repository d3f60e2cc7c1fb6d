import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { RecordDraft } from "@throughline/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import {
  afterPowerCut,
  countAsFlushed,
  buildFlushShim,
  flushesOf,
  flushPlace,
  sampledFailures,
  type FailingFlushes,
} from "../../../tools/flush-shim.ts";
import { talk } from "./kill-steps-fixture.ts";
import { openStore } from "./process-store.ts";
import { allRecords, key, outline } from "./session-fixture.ts";

interface Line {
  readonly is: string;
  readonly isOnDisk?: boolean;
  readonly outcome?: string | null;
  readonly code?: string;
}

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "flushes-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const built = await mkdtemp(join(tmpdir(), "flush-shim-"));
const shim = buildFlushShim(built);
afterAll(() => rm(built, { recursive: true, force: true }));
const turnsWorker = bundledWorker(new URL("./flush-worker.ts", import.meta.url));
const otherWorker = bundledWorker(new URL("./flush-work-worker.ts", import.meta.url));
const forkWorker = bundledWorker(new URL("./flush-fork-worker.ts", import.meta.url));

/** What a worker says while flushes fail, and what is on the disk then. */
async function run(worker: string, kind: string, failing: FailingFlushes | null) {
  const own = await mkdtemp(join(folder, `${kind}-`));
  const place = flushPlace(own);
  const sizes = { [otherWorker]: 12, [forkWorker]: 58 };
  const size = sizes[worker] ?? 0;
  if (!isFullSize || size > 0) await seed(kind, place.folder, talk(size));
  countAsFlushed(place);
  const child = spawn(process.execPath, [worker, kind, place.folder], {
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
  const disk = join(own, "after");
  await mkdir(disk);
  afterPowerCut(place, disk);
  return {
    lines,
    forked: worker === forkWorker ? await wordsIn(kind, disk, `${key}:fork`) : null,
    onDisk: await wordsIn(kind, disk),
    readable: await wordsIn(kind, place.folder),
    flushes: flushesOf(place),
  };
}

/** The positions of the tests begin with the first turn. */
async function seed(kind: string, path: string, drafts: readonly RecordDraft[]): Promise<void> {
  await using store = openStore(kind, path);
  const ref = { namespace: "", agentId: "main", key };
  await store.save(ref, { sessionId: "flushes" }, { ifRevision: null });
  if (drafts.length > 0) await store.append(ref, drafts);
}

interface Words {
  readonly outline: string[];
  readonly texts: string;
}

/** What a store holds: its records in short, and the texts in them. Empty where a session never got to be. */
async function wordsIn(kind: string, path: string, of = key): Promise<Words> {
  try {
    await using store = openStore(kind, path);
    const records = await allRecords(store, of);
    return { outline: outline(records), texts: JSON.stringify(records.map(({ record }) => record)) };
  } catch (error) {
    if ((error as { readonly code?: string }).code === "SESSION_NOT_FOUND") return { outline: [], texts: "" };
    throw error;
  }
}

/** Also those that make the store and the session. */
const isFullSize = process.env["THROUGHLINE_FLUSHES"] === "all";
async function inPairs<Case>(cases: readonly Case[], check: (one: Case) => Promise<void>): Promise<void> {
  for (let at = 0; at < cases.length; at += 2) await Promise.all(cases.slice(at, at + 2).map(check));
}

const count = (text: string, part: string): number => text.split(part).length - 1;

describe.skipIf(shim.library === null)(
  `flushes that fail${shim.library === null ? ": needs a C compiler and Linux" : ""}`,
  () => {
    describe.each(["jsonl", "sqlite"])("of store-%s", (kind) => {
      it("at any position: a turn is done only when all of it is on the disk, and no model is asked before its question is", async () => {
        const clean = await run(turnsWorker, kind, null);
        expect(clean.lines.map(({ is }) => is)).toEqual(["asked", "asked", "done", "asked", "done", "end"]);
        expect(clean.onDisk).toEqual(clean.readable);
        const positions = Array.from({ length: clean.flushes.length }, (_, index) => index + 1);
        const all = positions.flatMap((from) => [{ from, until: from }, { from }]);
        const cases = isFullSize ? all : sampledFailures(clean.flushes);
        const check = async (failing: FailingFlushes): Promise<void> => {
          const result = await run(turnsWorker, kind, failing);
          const { lines, onDisk, readable } = result;
          const label = JSON.stringify({ kind, ...failing, lines, file: clean.flushes[failing.from - 1]?.file });
          note(kind, failing, lines, clean.flushes[failing.from - 1]?.file ?? "");
          expect(
            lines.filter((line) => line.isOnDisk === false),
            label,
          ).toEqual([]);
          for (const { is, code } of lines)
            if (is === "thrown" || is === "stopped") expect(code, label).toMatch(/^STORE_/);
          const done = lines.filter(({ is }) => is === "done").length;
          expect(onDisk.outline.filter((word) => word === "turn:done").length, label).toBeGreaterThanOrEqual(done);
          const turns = lines.filter(({ is }) => is === "done" || is === "thrown");
          for (const [index, turn] of turns.entries()) {
            const number = ["one", "two"][index] ?? "";
            expect(count(readable.texts, `"question ${number}"`), label).toBeLessThanOrEqual(1);
            if (turn.is === "done") expect(count(onDisk.texts, `"question ${number}"`), label).toBe(1);
          }
          expect(lines.at(-1)?.is, label).toMatch(/^(end|stopped)$/);
        };
        await inPairs(cases, check);
      });

      it("at any position: a fork that was begun again is done only when all of its records are on the disk", async () => {
        const clean = await run(forkWorker, kind, null);
        expect(clean.lines).toEqual([{ is: "done" }]);
        expect(clean.forked).toEqual(clean.onDisk);
        const holdsRecords = ({ file }: { readonly file: string }): boolean => /forked\.jsonl$|db-wal$/.test(file);
        const positions = clean.flushes.flatMap((flush, index) =>
          isFullSize || holdsRecords(flush) ? [index + 1] : [],
        );
        const cases = isFullSize ? positions : [positions.at(0) ?? 1, positions.at(-1) ?? 1];
        await inPairs(cases, async (from) => {
          const { lines, forked, onDisk, flushes } = await run(forkWorker, kind, { from, until: from });
          const label = JSON.stringify({ kind, from, lines, flushes });
          if (lines.some(({ is }) => is === "done")) expect(forked?.texts === onDisk.texts, label).toBe(true);
        });
      });

      it("at any position: a checkpoint, a compaction, a better summary, a redaction and a reset are done only on the disk", async () => {
        const clean = await run(otherWorker, kind, null);
        expect(clean.lines.map(({ is, isOnDisk }) => [is, isOnDisk])).toEqual([
          ...Array.from({ length: 5 }, () => ["done", true]),
          ["end", undefined],
        ]);
        const positions = Array.from({ length: clean.flushes.length }, (_, index) => index + 1);
        const all = positions.flatMap((from) => [{ from, until: from }, { from }]);
        const cases = isFullSize ? all : sampledFailures(clean.flushes);
        await inPairs(cases, async (failing) => {
          const { lines } = await run(otherWorker, kind, failing);
          const file = clean.flushes[failing.from - 1]?.file ?? "";
          const label = JSON.stringify({ kind, ...failing, lines, file });
          note(kind, failing, lines, file);
          for (const { is, isOnDisk, code } of lines) {
            if (is === "done") expect(isOnDisk, label).toBe(true);
            if (is === "thrown" || is === "stopped") expect(code, label).toMatch(/^STORE_/);
          }
        });
      });
    });
  },
);

/** Lists what came of each position, for people; only when asked for. */
function note(kind: string, { from, until }: FailingFlushes, lines: readonly Line[], file: string): void {
  const path = process.env["THROUGHLINE_FLUSH_MATRIX"];
  if (path === undefined) return;
  const said = lines.flatMap(({ is, code }) =>
    is === "asked" || is === "end" ? [] : [code === undefined ? is : code],
  );
  appendFileSync(
    path,
    `facade\t${kind}\t${from}\t${until === undefined ? "all" : "one"}\t${file}\t${said.join(", ")}\n`,
  );
}
