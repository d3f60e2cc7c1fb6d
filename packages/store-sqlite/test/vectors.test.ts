import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { redactRecords, sessionRef, type SessionRef, type SessionStore, type VectorsFacet } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { testFolder } from "./test-folder.ts";

const scope = { namespace: "", agentId: "main" };
const model = "test/model@64";
const refOf = (name: string): SessionRef => sessionRef({ key: `agent:main:${name}` });

/** A vector whose bytes can be found in a file: no other one has its pattern. */
function planted(seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: 64 }, () => {
    state = (Math.imul(state ^ (state >>> 13), 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}

function bytesOf(vector: Float32Array): Buffer {
  const most = Math.max(...vector.map(Math.abs));
  return Buffer.from(Int8Array.from(vector, (value) => Math.round((value * 127) / most)).buffer);
}

function vectorsOf({ vectors }: SessionStore): VectorsFacet {
  if (vectors === undefined) throw new Error("the store keeps vectors");
  return vectors;
}

async function fill(store: SessionStore, ref: SessionRef, seed: number): Promise<void> {
  const { ranges } = await vectorsOf(store).pending(scope, { model });
  const range = ranges.find((each) => each.ref.key === ref.key);
  if (range === undefined) throw new Error("nothing is pending");
  const { fromSeq, toSeq, mark } = range;
  const vectors = Array.from({ length: toSeq - fromSeq + 1 }, (_, index) => ({
    firstSeq: fromSeq + index,
    lastSeq: fromSeq + index,
    part: 0,
    vector: planted(seed + fromSeq + index),
  }));
  expect(await vectorsOf(store).put(ref, { model, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors })).toBe(true);
}

async function withSession(store: SessionStore, name: string, count: number): Promise<SessionRef> {
  const ref = refOf(name);
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

/** Whether any file of the folder holds the bytes. */
function isInFiles(folder: string, bytes: Buffer): boolean {
  return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(bytes));
}

async function nearestSeqs(store: SessionStore, seed: number): Promise<readonly string[]> {
  const hits = await vectorsOf(store).nearest({ ...scope, model, vector: planted(seed), limit: 5 });
  return hits
    .filter(({ score }) => score > 0.95)
    .map(({ ref, firstSeq }) => `${ref.key.split(":").at(-1) ?? ""}#${firstSeq}`);
}

describe("vectors in a SQLite file", () => {
  it("leave no byte in any file after a redaction, a redaction of a text, and a purge", async () => {
    const folder = testFolder();
    await using store = createSqliteStore({ path: join(folder, "s.db") });
    const ref = await withSession(store, "a", 3);
    const other = await withSession(store, "b", 2);
    await fill(store, ref, 100);
    await fill(store, other, 200);
    for (const seed of [101, 102, 103, 201, 202])
      expect(isInFiles(folder, bytesOf(planted(seed))), `${seed}`).toBe(true);
    await redactRecords(store, ref, ["a-1"], { reason: "test" });
    await store.redact(ref, ["a-2"], { reason: "test", texts: ["zanzibara2"] });
    for (const seed of [101, 102]) expect(isInFiles(folder, bytesOf(planted(seed))), `${seed}`).toBe(false);
    const texts = (): readonly string[] =>
      ["zanzibara1", "zanzibara2", "zanzibara3", "zanzibarb1"].filter((text) => isInFiles(folder, Buffer.from(text)));
    expect(texts()).toEqual(["zanzibara3", "zanzibarb1"]);
    expect(isInFiles(folder, bytesOf(planted(103)))).toBe(true);
    await store.remove(ref, { purge: true });
    expect(isInFiles(folder, bytesOf(planted(103)))).toBe(false);
    expect(texts()).toEqual(["zanzibarb1"]);
    expect(isInFiles(folder, bytesOf(planted(201)))).toBe(true);
    expect(await vectorsOf(store).forget(scope)).toBe(2);
    for (const seed of [201, 202]) expect(isInFiles(folder, bytesOf(planted(seed))), `${seed}`).toBe(false);
  });

  it("are found through a fork, and are pending again in the fork when its origin is purged", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "s.db") });
    const ref = await withSession(store, "a", 4);
    await fill(store, ref, 100);
    const fork = refOf("fork");
    await store.fork?.fork(ref, fork, { atSeq: 2, sessionId: "fork" });
    expect((await vectorsOf(store).pending(scope, { model })).records).toBe(0);
    await store.append(fork, [{ type: "message", message: { role: "user", content: "own" } }]);
    await fill(store, fork, 300);
    expect(await nearestSeqs(store, 101)).toEqual(["a#1"]);
    await store.move(ref, { kind: "archive" });
    const active = { ...scope, model, vector: planted(101), state: "active" } as const;
    const [best] = await vectorsOf(store).nearest(active);
    expect([best?.ref.key, best?.firstSeq]).toEqual([fork.key, 1]);
    const beyond = await vectorsOf(store).nearest({ ...active, vector: planted(104) });
    expect(beyond.filter(({ score }) => score > 0.95)).toEqual([]);
    await store.remove({ ...ref, archiveId: "a" }, { purge: true });
    expect(await nearestSeqs(store, 101)).toEqual([]);
    const { ranges, records } = await vectorsOf(store).pending(scope, { model });
    expect(ranges.map(({ ref: { key }, fromSeq, toSeq }) => [key, fromSeq, toSeq])).toEqual([[fork.key, 1, 2]]);
    expect(records).toBe(2);
    await fill(store, fork, 400);
    expect(await nearestSeqs(store, 401)).toEqual(["fork#1"]);
    expect(await nearestSeqs(store, 303)).toEqual(["fork#3"]);
  });

  it("adds no table to a store that nobody asked for vectors", async () => {
    const path = join(testFolder(), "s.db");
    await using store = createSqliteStore({ path });
    const ref = await withSession(store, "a", 2);
    await redactRecords(store, ref, ["a-1"], { reason: "test" });
    await store.remove(ref, { purge: true });
    const database = new Database(path, { readonly: true });
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'store_vector%'").all();
    database.close();
    expect(tables).toEqual([]);
    expect(await vectorsOf(store).nearest({ ...scope, model, vector: planted(1) })).toEqual([]);
  });

  it("are no finding of a verification", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "s.db") });
    await fill(store, await withSession(store, "a", 3), 100);
    expect(await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
  });
});
