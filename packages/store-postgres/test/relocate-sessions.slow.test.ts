import type { SessionRef, SessionStore } from "@throughline/core";
import { createXorCodec } from "@throughline/store-conformance";
import {
  createPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
  relocateSessions,
} from "@throughline/store-postgres";
import type { RelocatedFamily } from "../src/relocate-sessions.ts";
import pg from "pg";
import { afterAll, describe, expect, inject, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { endingPool } from "./ending-pool.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

const refOf = (name: string, more: Partial<SessionRef> = {}): SessionRef => ({
  namespace: "",
  agentId: "main",
  key: `agent:main:${name}`,
  ...more,
});
const draft = (
  text: string,
  id?: string,
): { type: string; id?: string; message: { role: string; content: string } } => ({
  type: "message",
  ...(id === undefined ? {} : { id }),
  message: { role: "user", content: text },
});
const large = "x".repeat(300_000);

const stores: PostgresStore[] = [];
afterAll(async () => {
  for (const store of stores) await store.close();
});

function open(options: Partial<PostgresStoreOptions> = {}): PostgresStore {
  const where = options.pool === undefined ? { url } : {};
  const store = createPostgresStore({ ...where, schema: newSchema(), partitions: 2, notify: false, ...options });
  stores.push(store);
  return store;
}

async function moveAll(
  from: PostgresStore,
  to: PostgresStore,
  options: { readonly namespace?: string } = {},
): Promise<readonly RelocatedFamily[]> {
  const families: RelocatedFamily[] = [];
  for await (const family of relocateSessions(from, to, options)) families.push(family);
  return families;
}

/** Sessions of every kind: with payloads, keys, a fence, forks of forks, an archive, a redaction, a purged origin, imports. */
async function fill(store: PostgresStore): Promise<void> {
  const [one, two, three, old] = [refOf("one"), refOf("two"), refOf("three"), refOf("old")];
  await store.save(
    one,
    { sessionId: "one", label: 'with "quotes", {braces} and \\ signs' },
    { ifRevision: null, createdAtMs: 5 },
  );
  await store.append(one, [draft("first", "a"), draft(large, "b"), draft("secret", "c")], { idempotencyKey: "k1" });
  await store.append(one, [], { turn: { action: "open", fence: 1, turnId: "t", owner: "o", leaseUntilMs: 4e12 } });
  await store.append(one, [draft("in a turn")], { turn: { action: "close", fence: 1 }, windowFromSeq: 2 });
  await store.fork.fork(one, two, { sessionId: "two", atSeq: 2 });
  await store.append(two, [draft("of two")]);
  await store.fork.fork(two, three, { sessionId: "three" });
  await store.append(three, [draft("of three")]);
  await store.redact(one, ["c"], { reason: "test" });
  await store.save(old, { sessionId: "old-1" }, { ifRevision: null });
  await store.append(old, [draft("before the reset")]);
  await store.save(old, { sessionId: "old-2" }, { ifRevision: 1 });
  const origin = refOf("origin");
  await store.save(origin, { sessionId: "origin" }, { ifRevision: null });
  await store.append(origin, [draft("kept by a fork")]);
  await store.fork.fork(origin, refOf("heir"), { sessionId: "heir" });
  await store.remove(origin, { purge: true });
  const other = refOf("one", { namespace: "customer", agentId: "Helper", key: "agent:Helper:one" });
  await store.save(other, { sessionId: "other" }, { ifRevision: null });
  await store.append(other, [
    { source: '{"type":"session","id":"x","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z" }' },
  ]);
  await store.save(refOf("empty"), { sessionId: "empty" }, { ifRevision: null });
}

/** Everything that a store says of its sessions, but what it was moved away for. */
async function contentOf(store: SessionStore): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for (const namespace of ["", "customer"]) {
    const { sessions } = await store.list({ namespace, state: "any", sort: "key", limit: 1000 });
    for (const state of sessions) {
      const { ref } = state;
      if (state.entry["movedTo"] !== undefined) continue;
      const records: unknown[] = [];
      for await (const page of store.read(ref, { payload: "source" })) records.push(...page.records);
      found.push({ state, records });
    }
  }
  return found;
}

/** The ids of the sessions that are active at a store. */
async function activeAt(store: SessionStore): Promise<readonly string[]> {
  const all = await Promise.all(["", "customer"].map((namespace) => store.list({ namespace, limit: 1000 })));
  return all.flatMap(({ sessions }) => sessions.map(({ sessionId }) => sessionId)).toSorted();
}

const active = ["empty", "heir", "old-2", "one", "other", "three", "two"];

describe.skipIf(url === "")(
  `moving sessions to another schema${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each([
      ["plain", "tenant"],
      ["tenant", "plain"],
      ["plain", "plain"],
    ] as const)("from %s to %s keeps everything, and leaves the source archived", async (before, after) => {
      const [from, to] = [open({ layout: before }), open({ layout: after })];
      await fill(from);
      const wanted = await contentOf(from);
      const families = await moveAll(from, to);
      expect(families.map(({ outcome }) => outcome)).toEqual(families.map(() => "moved"));
      expect(
        families
          .flatMap(({ sessions }) => sessions)
          .map(({ sessionId }) => sessionId)
          .toSorted(),
      ).toEqual([...active, "old-1"].toSorted());
      expect(await contentOf(to)).toEqual(wanted);
      expect(await activeAt(to)).toEqual(active);
      expect(await activeAt(from)).toEqual([]);
      for await (const finding of to.maintenance.verify({ full: true })) expect(finding).toBeUndefined();
      // It goes on where it stood: keys, fences, forks, and the index.
      const { replayed } = await to.append(
        refOf("one"),
        [draft("first", "a"), draft(large, "b"), draft("secret", "c")],
        {
          idempotencyKey: "k1",
        },
      );
      expect(replayed).toBe(true);
      expect((await to.load(refOf("one")))?.head).toMatchObject({ fence: 1, turn: null });
      await to.append(refOf("three"), [draft("after the move")]);
      await to.save(refOf("new"), { sessionId: "new" }, { ifRevision: null });
      const hits: string[] = [];
      for await (const { sessionId } of to.search?.search({ text: "kept fork" }) ?? []) hits.push(sessionId);
      expect(hits).toEqual(["heir"]);
      const [left] = (await from.list({ state: "archived", keyPrefix: "agent:main:one" })).sessions;
      expect(left?.entry["movedTo"]).toMatchObject({ layout: after, archiveId: "" });
      // A second time there is nothing to do.
      expect(await moveAll(from, to)).toEqual([]);
    });

    it("under a codec, and to another database with sessions of its own", async () => {
      const codec = createXorCodec();
      const [from, to] = [open({ codec }), open({ codec, layout: "tenant" })];
      await fill(from);
      await to.save(refOf("there"), { sessionId: "there" }, { ifRevision: null });
      await to.append(refOf("there"), [draft("was here before")]);
      const wanted = await contentOf(from);
      await moveAll(from, to);
      const found = await contentOf(to);
      expect(found.filter((each) => !JSON.stringify(each).includes('"there"'))).toEqual(wanted);
      expect(await activeAt(to)).toEqual([...active, "there"].toSorted());
      const other = open();
      await expect(moveAll(from, other)).rejects.toMatchObject({ code: "CODEC_FAILED" });
    });

    it.each([undefined, createXorCodec()])("sources and marks of purged ones, with the codec %o", async (codec) => {
      const more = codec === undefined ? {} : { codec };
      const [from, to] = [open(more), open({ ...more, layout: "tenant" })];
      const listed = (sourceId: string): { readonly importedFrom: { format: string; sourceId: string } } => ({
        importedFrom: { format: "pi", sourceId },
      });
      for (const name of ["kept", "gone"]) {
        const importedFrom = { format: "pi", sessionId: name };
        await from.save(refOf(name), { sessionId: name, importedFrom }, { ifRevision: null });
      }
      await from.remove(refOf("gone"), { purge: true });
      const { purgedAtMs } = await from.list(listed("gone"));
      await moveAll(from, to);
      expect((await to.list(listed("kept"))).sessions.map(({ sessionId }) => sessionId)).toEqual(["kept"]);
      expect(await to.list(listed("gone"))).toEqual({ sessions: [], nextCursor: null, purgedAtMs });
      // What is left at the source is a copy: its purge is no purge of the session.
      const copy = { ...refOf("kept"), archiveId: "kept" };
      expect(await from.list(listed("kept"))).toEqual({ sessions: [], nextCursor: null, purgedAtMs: null });
      await from.remove(copy, { purge: true });
      await moveAll(from, to);
      expect(await to.list(listed("kept"))).toMatchObject({ sessions: [{ sessionId: "kept" }], purgedAtMs: null });
    });

    it("one namespace, and nothing of another", async () => {
      const [from, to] = [open(), open({ layout: "tenant" })];
      await fill(from);
      expect(await moveAll(from, to, { namespace: "customer" })).toHaveLength(1);
      expect([await activeAt(from), await activeAt(to)]).toEqual([active.filter((id) => id !== "other"), ["other"]]);
    });

    it("leaves what is in a turn, and what the target has; a later run moves it", async () => {
      const [from, to] = [open(), open({ layout: "tenant" })];
      for (const name of ["busy", "taken", "same-id", "free"]) {
        await from.save(refOf(name), { sessionId: name }, { ifRevision: null });
        await from.append(refOf(name), [draft(name)]);
      }
      await from.append(refOf("busy"), [], {
        turn: { action: "open", fence: 1, turnId: "t", owner: "o", leaseUntilMs: 4e12 },
      });
      await to.save(refOf("taken"), { sessionId: "another" }, { ifRevision: null });
      await to.save(refOf("elsewhere"), { sessionId: "SAME-id" }, { ifRevision: null });
      const outcomes = new Map(
        (await moveAll(from, to)).map(({ outcome, sessions }) => [sessions[0]?.sessionId, outcome] as const),
      );
      expect(Object.fromEntries(outcomes)).toEqual({ busy: "busy", taken: "taken", "same-id": "taken", free: "moved" });
      expect(await activeAt(from)).toEqual(["busy", "same-id", "taken"]);
      // The turn goes on as if nobody had come.
      await from.append(refOf("busy"), [draft("still here")], { turn: { action: "close", fence: 1 } });
      await to.remove(refOf("taken"), { purge: true });
      await to.remove(refOf("elsewhere"), { purge: true });
      expect((await moveAll(from, to)).map(({ outcome }) => outcome)).toEqual(["moved", "moved", "moved"]);
      expect(await activeAt(from)).toEqual([]);
      expect((await to.readWindow(refOf("busy"))).records).toHaveLength(2);
    });

    it("while others write: every acknowledged append is at one place, once", async () => {
      const [from, to] = [open(), open({ layout: "tenant" })];
      const names = ["w1", "w2", "w3"];
      for (const name of names) await from.save(refOf(name), { sessionId: name }, { ifRevision: null });
      let isOver = false;
      const writing = names.map(async (name) => {
        const ids: string[] = [];
        let store = from;
        for (let turn = 0; !isOver; turn++) {
          const idempotencyKey = `${name}-${turn}`;
          try {
            const { records } = await store.append(refOf(name), [draft(large.slice(0, 3000))], { idempotencyKey });
            ids.push(...records.map(({ id }) => id));
          } catch (error) {
            // Moved away: it goes on at the new place.
            expect(error).toMatchObject({ code: "SESSION_NOT_FOUND" });
            store = to;
            turn -= 1;
          }
        }
        return ids;
      });
      for (let round = 0; round < 20 && (await activeAt(from)).length > 0; round++) await moveAll(from, to);
      isOver = true;
      const said = await Promise.all(writing);
      expect(await activeAt(from)).toEqual([]);
      for (const [index, ids] of said.entries()) {
        const found: string[] = [];
        for await (const { records } of to.read(refOf(names[index] ?? ""))) found.push(...records.map(({ id }) => id));
        expect(found).toEqual(ids);
      }
    });

    it("brings what was redacted since a run that broke off, and forgets what was purged", async () => {
      const [source, target] = [newSchema(), newSchema()];
      const [from, to] = [open({ schema: source }), open({ schema: target, layout: "tenant" })];
      await fill(from);
      const tenants = `SELECT count(*)::int AS count FROM "${target}".records WHERE rest LIKE $1`;
      const copiesOf = async (text: string): Promise<number> =>
        (await withClient(url, (client) => client.query(tenants, [`%${text}%`]))).rows[0].count as number;
      // A turn keeps the family where it is: its records are copied, and stay copies.
      const busy = { action: "open" as const, turnId: "t", owner: "o", leaseUntilMs: 4e12 };
      await from.append(refOf("one"), [], { turn: { ...busy, fence: 2 } });
      await from.append(refOf("heir"), [], { turn: { ...busy, fence: 1 } });
      await moveAll(from, to);
      expect([await copiesOf("first"), await copiesOf("kept by a fork")]).toEqual([1, 1]);
      await from.redact(refOf("one"), ["a"], { reason: "test" });
      await from.remove(refOf("heir"), { purge: true });
      await from.append(refOf("one"), [], { turn: { action: "close", fence: 2 } });
      const wanted = await contentOf(from);
      await moveAll(from, to);
      expect([await copiesOf("first"), await copiesOf("kept by a fork")]).toEqual([0, 0]);
      const moved = JSON.stringify(await contentOf(to));
      for (const each of wanted) expect(moved).toContain(JSON.stringify(each).slice(0, 200));
    });

    it("refuses the same schema, another package's store, and a target without the source's row security", async () => {
      const schema = newSchema();
      await expect(moveAll(open({ schema }), open({ schema }))).rejects.toMatchObject({ code: "INPUT_INVALID" });
      const secured = open({ rowSecurity: true });
      await expect(moveAll(secured, open({ layout: "tenant" }))).rejects.toMatchObject({ code: "STORE_UNSUPPORTED" });
      await expect(moveAll(secured, open({ rowSecurity: true }))).resolves.toEqual([]);
      await expect(moveAll(secured, open({ rowSecurity: true, layout: "tenant" }))).resolves.toEqual([]);
      // Its roles may write any number; rows of the plain layout have nothing else.
      const byTenant = open({ rowSecurity: true, layout: "tenant" });
      await expect(moveAll(byTenant, open({ rowSecurity: true }))).rejects.toMatchObject({ code: "STORE_UNSUPPORTED" });
      await expect(moveAll(byTenant, open({ rowSecurity: true, layout: "tenant" }))).resolves.toEqual([]);
    });

    it("is ended at any statement and run again: nothing lost, doubled, or active at both places", async () => {
      const inners = [1, 2].map(() => new pg.Pool({ connectionString: url, max: 3 }));
      for (const inner of inners) inner.on("error", () => undefined);
      const step = testSize({ short: 17, long: 1 });
      const phases = testSize({ short: ["during"] as const, long: ["before", "during"] as const });
      let ended = 0;
      for (const phase of phases)
        for (const side of [0, 1])
          for (let at = Math.ceil(step / 2); ; at += step) {
            const [source, target] = [newSchema(), newSchema()];
            const from = open({ schema: source });
            await from.save(refOf("one"), { sessionId: "one" }, { ifRevision: null });
            await from.append(refOf("one"), [draft("first", "a"), draft(large, "b")], { idempotencyKey: "k1" });
            await from.fork.fork(refOf("one"), refOf("two"), { sessionId: "two" });
            await from.append(refOf("two"), [draft("of two")]);
            const wanted = await contentOf(from);
            const to = open({ schema: target, layout: "tenant" });
            await to.list();
            const pools = inners.map((inner) => endingPool(url, inner, phase));
            const [broken, whole] = [pools[side], pools[1 - side]];
            if (broken === undefined || whole === undefined) throw new Error("no pools");
            const ending = [source, target].map((schema, index) =>
              open({ schema, pool: pools[index]?.pool ?? expect.unreachable() }),
            );
            for (const store of ending) await store.list({ limit: 1 });
            broken.sent = 0;
            broken.at = at;
            const [endingFrom, endingTo] = ending as [PostgresStore, PostgresStore];
            const outcome = await moveAll(endingFrom, endingTo).then(
              () => "done",
              () => "broken",
            );
            const [here, there] = [await activeAt(from), await activeAt(to)];
            expect(
              here.filter((id) => there.includes(id)),
              `${phase} ${side} ${at}`,
            ).toEqual([]);
            await moveAll(from, to);
            expect(await contentOf(to), `${phase} ${side} ${at}`).toEqual(wanted);
            expect(await activeAt(from)).toEqual([]);
            for await (const finding of to.maintenance.verify({ full: true })) expect(finding).toBeUndefined();
            for (const store of [from, to, ...ending]) await store.close();
            await withClient(url, (client) =>
              client.query(`DROP SCHEMA "${source}" CASCADE; DROP SCHEMA "${target}" CASCADE`),
            );
            ended += outcome === "broken" ? 1 : 0;
            if (outcome === "done" && broken.sent < at) break;
          }
      for (const inner of inners) await inner.end();
      expect(ended).toBeGreaterThan(testSize({ short: 0, long: 60 }));
    }, 3_600_000);
  },
);
