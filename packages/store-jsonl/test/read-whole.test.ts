import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type ReadOptions, sessionRef, type SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const count = 1200;

/** A session long enough to be resumed by its window, which begins a hundred records before its end. */
async function longSession(root: string): Promise<void> {
  await using store = await storeWithSession(root, { sessionsJson: false });
  for (let from = 1; from <= count; from += 100)
    await store.append(
      mainRef,
      Array.from({ length: 100 }, (_, index) => userDraft(`${from + index} ${"ü".repeat(250)}`)),
      from === count - 99 ? { windowFromSeq: from } : {},
    );
}

async function recordsOf(store: SessionStore, limit = Infinity): Promise<readonly SourcedRecord[]> {
  const records: SourcedRecord[] = [];
  for await (const page of store.read(mainRef, { payload: "source", limit })) records.push(...page.records);
  return records;
}

const lines = (root: string): string[] => readFileSync(transcriptOf(root), "utf8").split("\n");

describe("a long session that is read from its beginning", () => {
  it(
    "is read once, and gives the same as where every place in it is known",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const root = newFolder();
      await longSession(root);
      const { files, counts, reset } = faultyFiles();
      await using store = createJsonlStore({ root, files, sessionsJson: false });
      const state = await store.load(mainRef);
      reset();
      const forward = await recordsOf(store);
      expect(counts["bytesRead"]).toBeLessThan(1.4 * statSync(transcriptOf(root)).size);
      expect(forward.map(({ seq }) => seq)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
      expect(state?.head.lastSeq).toBe(count);
      // From the second record on the place of each is looked for, from the end.
      const places: SourcedRecord[] = [];
      for await (const page of store.read(mainRef, { payload: "source", afterSeq: 1 })) places.push(...page.records);
      expect(forward.slice(1)).toEqual(places);
      expect(forward.at(-1)?.bytes).toBe(Buffer.byteLength(String(forward.at(-1)?.source)));
      expect(await recordsOf(store, 3)).toEqual(forward.slice(0, 3));
    },
  );

  it("gives each reader records of its own, though they were just decoded", { timeout: 60_000 }, async () => {
    const root = newFolder();
    await longSession(root);
    rmSync(`${root}/agents/main/throughline/index.db`, { force: true });
    await using store = createJsonlStore({ root, sessionsJson: false, index: false });
    await store.load(mainRef);
    const first = await recordsOf(store);
    const before = structuredClone(first);
    for (const { record } of first) Object.assign(record, { message: "changed by its reader" });
    expect(await recordsOf(store)).toEqual(before);
  });

  it("is understood again where a line is not the record it must be", { tags: ["slow"], timeout: 60_000 }, async () => {
    const root = newFolder();
    await longSession(root);
    const whole = lines(root);
    const foreign = `{"type":"message","id":"f","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"not ours"}}`;
    for (const changed of [whole.toSpliced(700, 1), whole.toSpliced(700, 0, foreign)]) {
      writeFileSync(transcriptOf(root), changed.join("\n"));
      await using store = createJsonlStore({ root, sessionsJson: false });
      await using other = createJsonlStore({ root, sessionsJson: false, index: false });
      const texts = await textsOf(store);
      expect(texts).toEqual(await textsOf(other));
      expect(texts.includes("not ours")).toBe(changed.includes(foreign));
    }
  });
});

describe("the bounds of a read", () => {
  it("need not be whole numbers, must be numbers, and never keep it from ending", async () => {
    const root = newFolder();
    await using store = await storeWithSession(root, { sessionsJson: false });
    await store.append(
      mainRef,
      ["1", "2", "3", "4"].map((text) => userDraft(text)),
    );
    const read = async (options: ReadOptions): Promise<readonly number[]> => {
      const seqs: number[] = [];
      for await (const page of store.read(mainRef, options)) seqs.push(...page.records.map(({ seq }) => seq));
      return seqs;
    };
    for (const order of ["ascending", "descending"] as const) {
      const inOrder = (...seqs: number[]): number[] => (order === "ascending" ? seqs : seqs.toReversed());
      expect(await read({ order, afterSeq: 1.5 })).toEqual(inOrder(2, 3, 4));
      expect(await read({ order, beforeSeq: 2.5 })).toEqual(inOrder(1, 2));
      expect(await read({ order, limit: 2.5 })).toHaveLength(2);
      expect(await read({ order, afterSeq: -Infinity, limit: 1e300 })).toHaveLength(4);
      for (const bound of ["afterSeq", "beforeSeq", "limit"])
        await expect(read({ order, [bound]: Number.NaN })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    }
    const signal = AbortSignal.timeout(50);
    const watched: number[] = [];
    for await (const page of store.watch!.watch(mainRef, { afterSeq: 2.5, signal }))
      watched.push(...page.records.map(({ seq }) => seq));
    expect(watched).toEqual([3, 4]);
  });

  it("that leave nothing still name a session that is not there", async () => {
    await using store = await storeWithSession(newFolder(), { sessionsJson: false });
    const pages = store.read(sessionRef({ key: "agent:main:none" }), { limit: 0 });
    await expect(pages[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(await recordsOf(store, 0)).toEqual([]);
  });
});
