import type { SessionRef, SessionStore, VectorsFacet } from "@throughline/core";
import { createMovingStore, createPostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { openSecured, own } from "./secured-store.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const scope = { namespace: "", agentId: "main" };
const model = "test/model@64";
const refOf = (name: string): SessionRef => ({ ...scope, key: `agent:main:${name}` });

/** A vector whose bytes can be found in a table: no other one has its pattern. */
function planted(seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: 64 }, () => {
    state = (Math.imul(state ^ (state >>> 13), 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}

function hexOf(vector: Float32Array): string {
  const most = Math.max(...vector.map(Math.abs));
  return Buffer.from(Int8Array.from(vector, (value) => Math.round((value * 127) / most)).buffer).toString("hex");
}

function vectorsOf({ vectors }: SessionStore): VectorsFacet {
  if (vectors === undefined) throw new Error("the store keeps vectors");
  return vectors;
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

/** Gives all that is pending of a session vectors, from `seed` plus the seq. */
async function fill(store: SessionStore, ref: SessionRef, seed: number): Promise<void> {
  const { ranges } = await vectorsOf(store).pending(scope, { model });
  const own = ranges.filter((each) => each.ref.key === ref.key);
  expect(own).not.toEqual([]);
  for (const { fromSeq, toSeq, mark } of own) {
    const vectors = Array.from({ length: toSeq - fromSeq + 1 }, (_, index) => ({
      firstSeq: fromSeq + index,
      lastSeq: fromSeq + index,
      part: 0,
      vector: planted(seed + fromSeq + index),
    }));
    expect(await vectorsOf(store).put(ref, { model, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors })).toBe(true);
  }
}

async function found(store: SessionStore, seed: number): Promise<readonly string[]> {
  const hits = await vectorsOf(store).nearest({ ...scope, model, vector: planted(seed), limit: 5 });
  return hits
    .filter(({ score }) => score > 0.95)
    .map(({ ref, firstSeq }) => `${ref.key.split(":").at(-1) ?? ""}#${firstSeq}`);
}

async function pendingRanges(store: SessionStore): Promise<readonly string[]> {
  const { ranges, records } = await vectorsOf(store).pending(scope, { model });
  expect(ranges.length === 0).toBe(records === 0);
  return ranges.map(({ ref, fromSeq, toSeq }) => `${ref.key.split(":").at(-1) ?? ""} ${fromSeq}-${toSeq}`);
}

/** Every row of every table as text, in which bytea is hexadecimal, and what the planner knows of the columns. */
async function contents(schema: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
      [schema],
    );
    const texts: string[] = [];
    for (const { name } of rows) {
      await client.query(`ANALYZE "${schema}"."${name}"`);
      texts.push(...(await client.query(`SELECT t::text FROM "${schema}"."${name}" t`)).rows.map(({ t }) => String(t)));
    }
    const sampled = await client.query("SELECT s::text AS t FROM pg_stats s WHERE schemaname = $1", [schema]);
    return [...texts, ...sampled.rows.map(({ t }) => String(t))].join("\n");
  });
}

describe.skipIf(url === "").for(["plain", "tenant"] as const)("vectors in PostgreSQL, %s layout", (layout) => {
  it("leave no byte in any table after a redaction, a redaction of a text, and a purge", async () => {
    const schema = newSchema();
    await using store = createPostgresStore({ url, schema, layout, partitions: 2, notify: false });
    const [ref, other] = [await withSession(store, "a", 3), await withSession(store, "b", 2)];
    await fill(store, ref, 100);
    await fill(store, other, 200);
    const there = async (): Promise<readonly number[]> => {
      const all = await contents(schema);
      return [101, 102, 103, 201, 202].filter((seed) => all.includes(hexOf(planted(seed))));
    };
    expect(await there()).toEqual([101, 102, 103, 201, 202]);
    await store.redact(ref, ["a-1"], { reason: "test" });
    expect(await there()).toEqual([102, 103, 201, 202]);
    await store.redact(ref, ["a-2"], { reason: "test", texts: ["zanzibara2"] });
    expect(await there()).toEqual([103, 201, 202]);
    expect(await contents(schema)).not.toMatch(/zanzibara[12]/);
    await store.remove(ref, { purge: true });
    expect(await there()).toEqual([201, 202]);
    expect(await vectorsOf(store).forget(scope)).toBe(2);
    expect(await there()).toEqual([]);
  });

  it("are found through a fork, also after its origin is purged, and what the origin lacked is pending in the fork", async () => {
    await using store = createPostgresStore({ url, schema: newSchema(), layout, partitions: 2, notify: false });
    const ref = await withSession(store, "a", 4);
    await fill(store, ref, 100);
    const fork = refOf("fork");
    await store.fork.fork(ref, fork, { atSeq: 3, sessionId: "fork" });
    expect(await pendingRanges(store)).toEqual([]);
    await store.append(fork, [{ type: "message", message: { role: "user", content: "own" } }]);
    expect(await pendingRanges(store)).toEqual(["fork 4-4"]);
    await fill(store, fork, 300);
    expect([await found(store, 101), await found(store, 304)]).toEqual([["a#1"], ["fork#4"]]);
    await store.redact(fork, ["a-2"], { reason: "test" });
    expect([await found(store, 102), await pendingRanges(store)]).toEqual([[], ["a 2-2"]]);
    await store.remove(ref, { purge: true });
    expect([await found(store, 101), await found(store, 104)]).toEqual([["fork#1"], []]);
    expect(await pendingRanges(store)).toEqual(["fork 2-2"]);
    await fill(store, fork, 400);
    expect([await found(store, 402), await pendingRanges(store)]).toEqual([["fork#2"], []]);
    await store.redact(fork, ["a-3"], { reason: "test" });
    expect([await found(store, 103), await pendingRanges(store)]).toEqual([[], ["fork 3-3"]]);
    await store.remove(fork, { purge: true });
    expect([await found(store, 101), await found(store, 402), await pendingRanges(store)]).toEqual([[], [], []]);
  });

  it("a batch of a fork is refused after another fork redacted a record of their purged origin", async () => {
    await using store = createPostgresStore({ url, schema: newSchema(), layout, partitions: 2, notify: false });
    const ref = await withSession(store, "a", 2);
    const forks = [refOf("one"), refOf("two")] as const;
    for (const [index, fork] of forks.entries())
      await store.fork.fork(ref, fork, { atSeq: 2, sessionId: `fork-${index}` });
    await store.remove(ref, { purge: true });
    expect((await pendingRanges(store)).toSorted()).toEqual(["one 1-2", "two 1-2"]);
    const { ranges } = await vectorsOf(store).pending(scope, { model });
    const { fromSeq, toSeq, mark } = ranges.find((range) => range.ref.key === forks[0].key)!;
    await store.redact(forks[1], ["a-1"], { reason: "test" });
    const vectors = [{ firstSeq: 1, lastSeq: 2, part: 0, vector: planted(1) }];
    const put = { model, mark, fromSeq, toSeq, resumeSeq: 1, vectors };
    expect(await vectorsOf(store).put(forks[0], put)).toBe(false);
    expect(await found(store, 1)).toEqual([]);
  });

  it("of puts at the same time are all found by a handle that searches meanwhile", async () => {
    const schema = newSchema();
    await using store = createPostgresStore({ url, schema, layout, partitions: 2, notify: false });
    await using reader = createPostgresStore({ url, schema, layout, partitions: 2, notify: false });
    const names = Array.from({ length: 12 }, (_, index) => `s${index}`);
    for (const name of names) await withSession(store, name, 2);
    let isFilled = false;
    const searches = (async () => {
      while (!isFilled) await found(reader, 1);
    })();
    await Promise.all(names.map((name, index) => fill(store, refOf(name), index * 10)));
    isFilled = true;
    await searches;
    for (const [index, name] of names.entries()) expect(await found(reader, index * 10 + 1)).toEqual([`${name}#1`]);
  });

  it("of another agent are seen by no role under row security, and its own are erased by it", async () => {
    const secured = await openSecured(url, { layout });
    try {
      const { owner, schema, roleUrl } = secured;
      await using store = createPostgresStore({ url: roleUrl, schema, migrate: false, notify: false });
      const others = { namespace: "", agentId: "other" };
      const { ranges } = await vectorsOf(owner).pending(others, { model });
      const [range] = ranges;
      const put = { model, fromSeq: 1, toSeq: 1, resumeSeq: 1 };
      const vectors = [{ firstSeq: 1, lastSeq: 1, part: 0, vector: planted(500) }];
      expect(await vectorsOf(owner).put(range!.ref, { ...put, mark: range!.mark, vectors })).toBe(true);
      expect(await vectorsOf(store).nearest({ ...others, model, vector: planted(500) })).toEqual([]);
      expect(await vectorsOf(store).pending(others, { model })).toEqual({ ranges: [], records: 0, hasOthers: false });
      expect(await vectorsOf(store).forget(others)).toBe(0);
      const mine = (await vectorsOf(store).pending(scope, { model })).ranges.find(({ ref }) => ref.key === own.key);
      expect(await vectorsOf(store).put(own, { ...put, mark: mine!.mark, vectors })).toBe(true);
      expect(await found(store, 500)).toEqual([`${own.key.split(":").at(-1) ?? ""}#1`]);
      const forged = `UPDATE "${schema}".vectors SET agent_id = 'other'`;
      await expect(withClient(roleUrl, (client) => client.query(forged))).rejects.toThrow(/row-level security/);
      await store.remove(own, { purge: true });
      expect(await found(store, 500)).toEqual([]);
      expect(await vectorsOf(owner).nearest({ ...others, model, vector: planted(500) })).toHaveLength(1);
    } finally {
      await secured.dispose();
    }
  });

  it("are absent while a store moves, and the store says so", async () => {
    const [from, to] = [0, 1].map(() => createPostgresStore({ url, schema: newSchema(), layout, notify: false }));
    await using moving = createMovingStore(to!, from!);
    expect([moving.vectors, moving.capabilities.vectors]).toEqual([undefined, false]);
  });
});
