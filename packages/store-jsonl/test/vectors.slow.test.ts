import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { redactRecords, sessionRef, type SessionRef, type SessionStore, type VectorsFacet } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import { faultyFiles } from "./faulty-files.ts";
import { planted } from "./planted-vector.ts";
import { contentsBelow, filesBelow, makeQuickFolder, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders(makeQuickFolder);
const scope = { namespace: "", agentId: "main" };
const model = "test/model@64";
const databaseOf = (root: string): string => join(root, "agents/main/throughline/vectors.db");

function bytesOf(what: Float32Array | string): Buffer {
  if (typeof what === "string") return Buffer.from(what);
  const most = Math.max(...what.map(Math.abs));
  return Buffer.from(Int8Array.from(what, (value) => Math.round((value * 127) / most)).buffer);
}

/** Returns which of the vectors, by their seeds, and of the texts are in a file of the folder. */
function foundIn(folder: string, ...whats: readonly (number | string)[]): readonly (number | string)[] {
  const contents = contentsBelow(folder).map((content) => Buffer.from(content));
  return whats.filter((what) => {
    const bytes = bytesOf(typeof what === "number" ? planted(what) : what);
    return contents.some((content) => content.includes(bytes));
  });
}

function vectorsOf({ vectors }: SessionStore): VectorsFacet {
  if (vectors === undefined) throw new Error("the store keeps vectors");
  return vectors;
}

async function withSession(store: SessionStore, name: string, count: number): Promise<SessionRef> {
  const ref = sessionRef({ key: `agent:main:${name}` });
  await store.save(ref, { sessionId: name }, { ifRevision: null });
  await store.append(
    ref,
    Array.from({ length: count }, (_, index) => ({
      type: "message",
      id: `${name}-${index + 1}`,
      message: { role: "user", content: `zanzibar${name}${index + 1}` },
    })),
  );
  return ref;
}

async function pendingRange(store: SessionStore, ref: SessionRef) {
  const { ranges } = await vectorsOf(store).pending(scope, { model });
  const range = ranges.find((each) => each.ref.key === ref.key);
  if (range === undefined) throw new Error("nothing is pending");
  return range;
}

function putOf({ fromSeq, toSeq, mark }: Awaited<ReturnType<typeof pendingRange>>, seed: number) {
  const vectors = Array.from({ length: toSeq - fromSeq + 1 }, (_, index) => {
    const seq = fromSeq + index;
    return { firstSeq: seq, lastSeq: seq, part: 0, vector: planted(seed + seq) };
  });
  return { model, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors };
}

async function fill(store: SessionStore, ref: SessionRef, seed: number): Promise<void> {
  expect(await vectorsOf(store).put(ref, putOf(await pendingRange(store, ref), seed))).toBe(true);
}

async function nearestSeqs(store: SessionStore, seed: number): Promise<readonly string[]> {
  const hits = await vectorsOf(store).nearest({ ...scope, model, vector: planted(seed), limit: 5 });
  return hits.filter(({ score }) => score > 0.95).map(({ sessionId, firstSeq }) => `${sessionId}#${firstSeq}`);
}

describe("vectors of a JSON Lines store", () => {
  it("lists what is pending of many sessions, and gives the loop a turn in between", async () => {
    await using store = createJsonlStore({ root: newFolder() });
    const names = Array.from({ length: 450 }, (_, index) => `s${index}`);
    for (const name of names) await withSession(store, name, 1);
    let [turns, isOver] = [0, false];
    const count = (): void => void setImmediate(() => (isOver ? undefined : ((turns += 1), count())));
    count();
    const { ranges, records } = await vectorsOf(store).pending(scope, { model, limit: 420 });
    isOver = true;
    expect(records).toBe(450);
    expect(new Set(ranges.map(({ sessionId }) => sessionId)).size).toBe(420);
    expect(turns).toBeGreaterThan(2);
  });

  it("leave no byte in any file after a redaction, a redaction of a text, and a purge, also in forks", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    const ref = await withSession(store, "a", 3);
    const other = await withSession(store, "b", 2);
    await fill(store, ref, 100);
    await fill(store, other, 200);
    const fork = sessionRef({ key: "agent:main:fork" });
    await store.fork?.fork(ref, fork, { atSeq: 2, sessionId: "fork" });
    await fill(store, fork, 300);
    const seeds = [101, 102, 103, 201, 202, 301, 302];
    expect(foundIn(root, ...seeds)).toEqual(seeds);
    await redactRecords(store, ref, ["a-1"], { reason: "test" });
    await store.redact(ref, ["a-2"], { reason: "test", texts: ["zanzibara2"] });
    expect(foundIn(root, ...seeds, "zanzibara1", "zanzibara2", "zanzibara3")).toEqual([103, 201, 202, "zanzibara3"]);
    await store.remove(ref, { purge: true });
    expect(foundIn(root, ...seeds, "zanzibara3")).toEqual([201, 202]);
    expect(await nearestSeqs(store, 201)).toEqual(["b#1"]);
  });

  it("are pending without a read of any transcript that did not change", async () => {
    const root = newFolder();
    const count = 40;
    await using writer = createJsonlStore({ root });
    const refs: SessionRef[] = [];
    for (let index = 0; index < count; index++) refs.push(await withSession(writer, `s${index}`, 2));
    expect((await vectorsOf(writer).pending(scope, { model })).records).toBe(2 * count);
    let [read, looks] = [[] as string[], 0];
    const files = {
      ...nodeFiles,
      facts: (path: string) => ((looks += 1), nodeFiles.facts(path)),
      open: (...given: Parameters<typeof nodeFiles.open>) => (read.push(basename(given[0])), nodeFiles.open(...given)),
    };
    await using store = createJsonlStore({ root, files });
    const counted = async (): Promise<readonly [records: number, transcripts: readonly string[], looks: number]> => {
      [read, looks] = [[], 0];
      const { records } = await vectorsOf(store).pending(scope, { model });
      return [records, read.filter((name) => /^s\d+\.jsonl$/.test(name)), looks];
    };
    // The other handle writes its index a moment after the transcripts.
    await expect.poll(async () => (await counted())[1]).toEqual([]);
    await writer.append(refs[7]!, [{ type: "message", message: { role: "user", content: "more" } }]);
    const [records, transcripts, looked] = await counted();
    expect([records, transcripts]).toEqual([2 * count + 1, ["s7.jsonl"]]);
    expect(looked).toBeLessThan(3 * count);
  });

  it("are gone although the text could not be redacted, and are pending then", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, files: faults.files });
    const ref = await withSession(store, "a", 2);
    await fill(store, ref, 100);
    const stale = putOf(await pendingAfterMore(store, ref), 100);
    faults.failNext("rename", "EIO");
    await expect(store.redact(ref, ["a-1"], { reason: "test" })).rejects.toMatchObject({ code: "STORE_IO" });
    expect(foundIn(root, "zanzibara1", 101)).toEqual(["zanzibara1"]);
    expect(await vectorsOf(store).put(ref, stale)).toBe(false);
    await store.redact(ref, ["a-1"], { reason: "test" });
    expect(foundIn(root, "zanzibara1", 101, 102)).toEqual([102]);
  });

  it("may be deleted or damaged at any time: they are pending again, and no batch of before is stored", async () => {
    const root = newFolder();
    const ref = await (async () => {
      await using store = createJsonlStore({ root });
      const made = await withSession(store, "a", 2);
      await fill(store, made, 100);
      return made;
    })();
    await using store = createJsonlStore({ root });
    expect(await nearestSeqs(store, 101)).toEqual(["a#1"]);
    const before = putOf(await pendingAfterMore(store, ref), 500);
    for (const damage of [removeDatabase, overwriteDatabase]) {
      damage(root);
      expect(await nearestSeqs(store, 101)).toEqual([]);
      expect((await vectorsOf(store).pending(scope, { model })).records).toBe(3);
      expect(await vectorsOf(store).put(ref, before)).toBe(false);
      await fill(store, ref, 100);
      expect(await nearestSeqs(store, 101)).toEqual(["a#1"]);
    }
  });

  it("go when a session is missing from the log, as after a purge by a version without vectors", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    await fill(store, await withSession(store, "a", 2), 100);
    await fill(store, await withSession(store, "b", 2), 200);
    await using older = createJsonlStore({ root, files: withoutVectors(root) });
    await older.remove(sessionRef({ key: "agent:main:a" }), { purge: true });
    expect(foundIn(root, 101)).toEqual([101]);
    expect(await nearestSeqs(store, 101)).toEqual([]);
    expect((await vectorsOf(store).pending(scope, { model })).records).toBe(0);
    expect(foundIn(root, 101)).toEqual([]);
    expect(await nearestSeqs(store, 201)).toEqual(["b#1"]);
  });

  it("are there after the process that put them is killed, and gone after one that erased them is", async () => {
    const root = newFolder();
    const killed = (work: string): number | null => {
      const script = join(import.meta.dirname, "vectors-until-killed.ts");
      return spawnSync(process.execPath, ["--conditions=@throughline/source", script, root, work]).status;
    };
    // A process that ends by a signal has no status.
    expect(killed("put")).toBeNull();
    await using store = createJsonlStore({ root });
    expect((await vectorsOf(store).nearest({ ...scope, model, vector: planted(102), limit: 1 }))[0]).toMatchObject({
      sessionId: "a",
      firstSeq: 2,
    });
    expect(killed("redact")).toBeNull();
    expect(foundIn(root, 101, 102, "zanzibara1")).toEqual([102]);
    expect(killed("purge")).toBeNull();
    expect(foundIn(root, 101, 102, "zanzibara2")).toEqual([]);
  });

  it("make no file in a store that nobody asked for vectors, and none without an index", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    const ref = await withSession(store, "a", 2);
    await redactRecords(store, ref, ["a-1"], { reason: "test" });
    await store.remove(ref, { purge: true });
    expect(await vectorsOf(store).nearest({ ...scope, model, vector: planted(1) })).toEqual([]);
    expect(filesBelow(root).filter((path) => path.includes("vectors"))).toEqual([]);
    await using without = createJsonlStore({ root: newFolder(), index: false });
    expect([without.vectors, without.capabilities.vectors]).toEqual([undefined, false]);
  });

  it("are refused by name on a network file system, and what lies there goes with a purge", async () => {
    const root = newFolder();
    {
      await using store = createJsonlStore({ root });
      await fill(store, await withSession(store, "a", 2), 100);
    }
    const { files } = faultyFiles();
    await using store = createJsonlStore({ root, files: { ...files, fileSystem: () => "network" } });
    await expect(vectorsOf(store).pending(scope, { model })).rejects.toMatchObject({ code: "STORE_UNSUPPORTED" });
    expect(await nearestSeqs(store, 101)).toEqual([]);
    await store.remove(sessionRef({ key: "agent:main:a" }), { purge: true });
    expect(foundIn(root, 101)).toEqual([]);
  });
});

async function pendingAfterMore(store: SessionStore, ref: SessionRef) {
  await store.append(ref, [{ type: "message", message: { role: "user", content: "more" } }]);
  return pendingRange(store, ref);
}

function removeDatabase(root: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(`${databaseOf(root)}${end}`, { force: true });
}

function overwriteDatabase(root: string): void {
  removeDatabase(root);
  writeFileSync(databaseOf(root), "This was a database. ".repeat(500));
}

/** A version that does not know the file sees none. */
function withoutVectors(root: string) {
  const { files } = faultyFiles();
  return { ...files, facts: (path: string) => (path === databaseOf(root) ? null : files.facts(path)) };
}
