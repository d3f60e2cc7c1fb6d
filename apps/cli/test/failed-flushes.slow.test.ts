import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionRef, StoredRecord } from "@throughline/core";
import { createProviderSimulator } from "@throughline/testing";
import { afterAll, describe, expect, it } from "vitest";
import {
  afterPowerCut,
  buildFlushShim,
  countAsFlushed,
  flushesOf,
  flushPlace,
  isOnDisk,
  sampledFailures,
  type FailingFlushes,
} from "../../../tools/flush-shim.ts";
import { openStore } from "../src/open-store.ts";
import { runChild, temporaryDirectory } from "./harness.ts";
import { testSize } from "../../../tools/test-size.ts";

const key = "agent:main:cli:direct:flushes";
const ref: SessionRef = { namespace: "", agentId: "main", key };
const question = "question on the disk";
const answer = "answer on the disk";
const directory = temporaryDirectory();
afterAll(() => directory.remove());
const shim = buildFlushShim(directory.path);
let runs = 0;
const isFullSize = process.env["THROUGHLINE_FLUSHES"] === "all";

/** `chat --once` while flushes fail, and what is on the disk when the model is asked and at the end. */
async function chatOnce(scheme: string, failing: FailingFlushes | null) {
  const own = join(directory.path, String(runs++));
  const [home, after] = [join(own, "home"), join(own, "after")];
  for (const folder of [own, home, after]) mkdirSync(folder);
  const place = flushPlace(own);
  const url = (folder: string): string => `${scheme}:${join(folder, scheme === "sqlite" ? "s.db" : "s")}`;
  {
    await using store = await openStore(url(place.folder), { workingDirectory: home, create: true });
    await store.save(ref, { sessionId: "flushes" }, { ifRevision: null });
  }
  countAsFlushed(place);
  const asked: boolean[] = [];
  await using provider = createProviderSimulator({
    fallback: () => {
      asked.push(isOnDisk(place.disk, question));
      return answer;
    },
  });
  await provider.start();
  const environment = {
    ANTHROPIC_API_KEY: "sk-test",
    ANTHROPIC_BASE_URL: provider.url,
    ...shim.environment(place, failing),
  };
  const args = ["chat", "--once", question, "--key", key, "--model", "anthropic/claude-opus-5"];
  const run = await runChild(home, [...args, "--store", url(place.folder)], { environment });
  afterPowerCut(place, after);
  const [onDisk, readable] = [await wordsIn(url(after), home), await wordsIn(url(place.folder), home)];
  return { run, asked, onDisk, readable, flushes: flushesOf(place) };
}

async function wordsIn(url: string, home: string): Promise<string> {
  await using store = await openStore(url, { workingDirectory: home, create: true });
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return JSON.stringify(records.map(({ record }) => record));
}

const count = (text: string, part: string): number => text.split(part).length - 1;

describe.skipIf(shim.library === null)(
  `chat --once while flushes fail${shim.library === null ? ": needs a C compiler and Linux" : ""}`,
  () => {
    // What a failed flush does to a turn, the tests of the session try in both stores.
    it.each(testSize({ short: ["sqlite"], long: ["jsonl", "sqlite"] }))(
      "ends with 0 only when the whole turn is on the disk, and asks nobody before the question is: %s",
      async (scheme) => {
        const clean = await chatOnce(scheme, null);
        expect(clean).toMatchObject({ run: { code: 0, stdout: `${answer}\n` }, asked: [true] });
        expect(clean.onDisk).toBe(clean.readable);
        const check = async (failing: FailingFlushes): Promise<void> => {
          const { run, asked, onDisk, readable } = await chatOnce(scheme, failing);
          const file = clean.flushes[failing.from - 1]?.file ?? "";
          const label = JSON.stringify({ scheme, ...failing, file, run, asked });
          note([
            "chat --once",
            scheme,
            failing.from,
            failing.until === undefined ? "all" : "one",
            file,
            run.code,
            asked.length,
          ]);
          expect(asked, label).not.toContain(false);
          expect(count(readable, question), label).toBeLessThanOrEqual(1);
          expect(count(readable, answer), label).toBeLessThanOrEqual(1);
          if (run.code !== 0) {
            expect(run.code, label).toBe(1);
            expect(run.stderr, label).toMatch(/^error: /m);
            return;
          }
          for (const part of [question, answer, '"state":"done"']) expect(count(onDisk, part), label).toBe(1);
        };
        const positions = clean.flushes.map((_, index) => index + 1);
        const all = positions.flatMap((from) => [{ from, until: from }, { from }]);
        const cases = isFullSize ? all : sampledFailures(clean.flushes);
        for (let at = 0; at < cases.length; at += 2) await Promise.all(cases.slice(at, at + 2).map(check));
      },
    );
  },
);

/** `rewind` while flushes fail, and the moves of the head that are on the disk at the end. */
async function rewindOnce(scheme: string, failing: FailingFlushes | null) {
  const own = join(directory.path, String(runs++));
  const [home, after] = [join(own, "home"), join(own, "after")];
  for (const folder of [own, home, after]) mkdirSync(folder);
  const place = flushPlace(own);
  const url = (folder: string): string => `${scheme}:${join(folder, scheme === "sqlite" ? "s.db" : "s")}`;
  {
    await using store = await openStore(url(place.folder), { workingDirectory: home, create: true });
    await store.save(ref, { sessionId: "flushes" }, { ifRevision: null });
    for (const content of ["one", "two", "three"])
      await store.append(ref, [{ type: "message", message: { role: "user", content } }]);
  }
  countAsFlushed(place);
  const environment = shim.environment(place, failing);
  const run = await runChild(home, ["rewind", key, "--to", "1", "--json", "--store", url(place.folder)], {
    environment,
  });
  afterPowerCut(place, after);
  const leaves = async (folder: string) => count(await wordsIn(url(folder), home), '"type":"leaf"');
  return { run, onDisk: await leaves(after), readable: await leaves(place.folder), flushes: flushesOf(place) };
}

describe.skipIf(shim.library === null)("rewind while one flush fails", () => {
  it.each(testSize({ short: ["jsonl"], long: ["jsonl", "sqlite"] }))(
    "moves the head once, and that is on the disk: %s",
    async (scheme) => {
      const clean = await rewindOnce(scheme, null);
      expect(clean).toMatchObject({ run: { code: 0 }, onDisk: 1, readable: 1 });
      const positions = isFullSize
        ? clean.flushes.map((_, index) => index + 1)
        : sampledFailures(clean.flushes).flatMap(({ from, until }) => (from === until ? [from] : []));
      for (const from of positions) {
        const { run, onDisk, readable } = await rewindOnce(scheme, { from, until: from });
        const label = JSON.stringify({ scheme, from, run });
        // The append is made again with its key.
        expect({ code: run.code, onDisk, readable }, label).toEqual({ code: 0, onDisk: 1, readable: 1 });
      }
    },
  );
});

/** `import` or `copy` of a session of some batches while flushes fail, repeated without failures where it ended with 1. */
async function transferred(command: "import" | "copy", scheme: string, failing: FailingFlushes | null) {
  const own = join(directory.path, String(runs++));
  const [home, after] = [join(own, "home"), join(own, "after")];
  for (const folder of [own, home, after]) mkdirSync(folder);
  const place = flushPlace(own);
  const url = (folder: string): string => `${scheme}:${join(folder, scheme === "sqlite" ? "s.db" : "s")}`;
  const source = join(home, "old.jsonl");
  const lines = Array.from({ length: transferRecords }, (_, index) => {
    const message = { role: "user", content: `line ${index} of it` };
    const [id, parentId] = [`m${index}`, index === 0 ? null : `m${index - 1}`];
    return JSON.stringify({ type: "message", id, parentId, timestamp: "2026-02-01T16:10:51.000Z", message });
  });
  const header = { type: "session", version: 3, id: "old", timestamp: "2026-02-01T16:10:50.000Z", cwd: "/x" };
  writeFileSync(source, `${[JSON.stringify(header), ...lines].join("\n")}\n`);
  const importing = ["import", source, "--key", key];
  if (command === "copy") await runChild(home, importing);
  const args =
    command === "import"
      ? [...importing, "--store", url(place.folder)]
      : ["copy", key, "--to-store", url(place.folder)];
  {
    // Making a store is no append.
    await using store = await openStore(url(place.folder), { workingDirectory: home, create: true });
    await store.save({ ...ref, key: "other" }, { sessionId: "other" }, { ifRevision: null });
  }
  countAsFlushed(place);
  const first = await runChild(home, args, { environment: shim.environment(place, failing) });
  const flushes = flushesOf(place);
  const again = first.code === 0 ? first : await runChild(home, args);
  if (first.code === 0) afterPowerCut(place, after);
  const onDisk = first.code === 0 ? await wordsIn(url(after), home) : null;
  return { first, again, onDisk, readable: await wordsIn(url(place.folder), home), flushes };
}

const transferRecords = 250;
/** In the short tier each command and each store once. */
const transfers = [
  ["import", "sqlite"],
  ["import", "jsonl"],
  ["copy", "sqlite"],
  ["copy", "jsonl"],
] as const;

describe.skipIf(shim.library === null)(
  `records that are brought in while flushes fail${shim.library === null ? ": needs a C compiler and Linux" : ""}`,
  () => {
    it.each(isFullSize ? transfers : transfers.slice(1, 3))(
      "are there once, and on the disk where the command says so: %s, %s",
      async (command, scheme) => {
        const clean = await transferred(command, scheme, null);
        expect(clean.first.code).toBe(0);
        const codes: (number | null)[] = [];
        const check = async (position: number): Promise<void> => {
          const { first, again, onDisk, readable } = await transferred(command, scheme, {
            from: position,
            until: position,
          });
          const label = JSON.stringify({ command, scheme, position, file: clean.flushes[position - 1]?.file, first });
          codes.push(first.code);
          note([command, scheme, position, clean.flushes[position - 1]?.file ?? "", first.code]);
          expect(again.code, label).toBe(0);
          for (const words of onDisk === null ? [readable] : [readable, onDisk])
            expect(words.match(/line \d+ of it/g), label).toHaveLength(transferRecords);
        };
        const positions = clean.flushes.map((_, index) => index + 1);
        const cases = isFullSize ? positions : positions.slice(0, 6);
        for (let at = 0; at < cases.length; at += 2) await Promise.all(cases.slice(at, at + 2).map(check));
        // The flush of none of the three batches ends the command when it fails once.
        expect(codes.filter((code) => code === 0).length).toBeGreaterThanOrEqual(testSize({ short: 1, long: 3 }));
      },
      120_000,
    );
  },
);

/** Lists what came of each position, for people; only when asked for. */
function note(facts: readonly unknown[]): void {
  const path = process.env["THROUGHLINE_FLUSH_MATRIX"];
  if (path !== undefined) appendFileSync(path, `${facts.join("\t")}\n`);
}
