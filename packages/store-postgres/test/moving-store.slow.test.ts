import type { RecordPage, SessionRef } from "@throughline/core";
import {
  createPostgresStore,
  createMovingStore,
  relocateSessions,
  type PostgresStore,
} from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, describe, expect, inject, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { endingPool } from "./ending-pool.ts";
import { newSchema } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

const refOf = (name: string): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:${name}` });
const draft = (content: string, id?: string): { type: string; id?: string; message: object } => ({
  type: "message",
  ...(id === undefined ? {} : { id }),
  message: { role: "user", content },
});

const stores: PostgresStore[] = [];
afterAll(async () => {
  for (const store of stores) await store.close();
});

interface Places {
  readonly from: PostgresStore;
  readonly to: PostgresStore;
  /** The schema of `to`. */
  readonly target: string;
  /** Another program's handles on the same schemas. */
  another(): { readonly from: PostgresStore; readonly to: PostgresStore };
}

function openPlaces(): Places {
  const [source, target] = [newSchema(), newSchema()];
  const open = (): { readonly from: PostgresStore; readonly to: PostgresStore } => {
    const from = createPostgresStore({ url, schema: source, partitions: 2, pollMs: 50 });
    const to = createPostgresStore({ url, schema: target, partitions: 2, layout: "tenant", pollMs: 50 });
    stores.push(from, to);
    return { from, to };
  };
  return { ...open(), target, another: open };
}

async function moveAll(from: PostgresStore, to: PostgresStore): Promise<readonly string[]> {
  const outcomes: string[] = [];
  for await (const { outcome } of relocateSessions(from, to)) outcomes.push(outcome);
  return outcomes;
}

async function all<Each>(pages: AsyncIterable<Each>): Promise<Each[]> {
  return Array.fromAsync(pages);
}

describe.skipIf(url === "")(
  `one store over the schema that sessions leave and the one they go to${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("loses and doubles nothing while programs write, list, search and watch, and sessions move under them", async () => {
      const { from, to, another } = openPlaces();
      const names = Array.from({ length: testSize({ short: 6, long: 24 }) }, (_, index) => `s${index}`);
      for (const name of names) await from.save(refOf(name), { sessionId: name }, { ifRevision: null });
      await from.fork.fork(refOf("s0"), refOf("fork"), { sessionId: "fork" });
      const watched: number[] = [];
      const ending = new AbortController();
      const watcher = createMovingStore(another().to, another().from);
      const watch = (async () => {
        const pages = watcher.watch?.watch(refOf("s1"), { afterSeq: 0, signal: ending.signal });
        for await (const { records } of pages as AsyncIterable<RecordPage>)
          watched.push(...records.map(({ seq }) => seq));
      })();
      const appendsEach = testSize({ short: 25, long: 200 });
      const acknowledged = new Map<string, string[]>(names.map((name) => [name, []]));
      const writers = [0, 1].map(async (writer) => {
        const store = createMovingStore(another().to, another().from);
        for (let turn = 0; turn < appendsEach; turn++)
          for (const [index, name] of names.entries()) {
            if (index % 2 !== writer) continue;
            const id = `${name}-${turn}`;
            await store.append(refOf(name), [draft(`needle ${id}`, id)], { idempotencyKey: id });
            acknowledged.get(name)?.push(id);
            // A session that is being moved is at one place at least, and at one place in a list.
            if (turn % 5 === 0) expect((await store.readWindow?.(refOf(name)))?.records.at(-1)?.id).toBe(id);
          }
      });
      const reader = createMovingStore(to, from);
      const outcomes: string[] = [];
      const mover = (async () => {
        for (let left = 1; left > 0;) {
          outcomes.push(...(await moveAll(from, to)));
          left = (await from.list()).sessions.length;
        }
      })();
      await Promise.all([mover, ...writers]);
      expect(outcomes.filter((outcome) => outcome === "moved")).toHaveLength(names.length + 1);
      for (const name of names) {
        const pages = await all(to.read(refOf(name)));
        expect(pages.flatMap(({ records }) => records.map(({ id }) => id))).toEqual(acknowledged.get(name));
      }
      for (let waited = 0; watched.length < appendsEach && waited < 400; waited++)
        await new Promise((resolve) => setTimeout(resolve, 25));
      ending.abort();
      await watch;
      expect(watched).toEqual(Array.from({ length: appendsEach }, (_, index) => index + 1));
      const listed: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page = await reader.list({ state: "any", limit: 2, ...(cursor === undefined ? {} : { cursor }) });
        listed.push(...page.sessions.map(({ sessionId }) => sessionId));
        cursor = page.nextCursor;
      }
      expect(listed.toSorted()).toEqual([...names, "fork"].toSorted());
      const hits = await all(
        reader.search?.search({ text: "needle", state: "any", limit: 1000 }) ?? expect.unreachable(),
      );
      expect(hits).toHaveLength(Math.min(1000, names.length * appendsEach));
      expect(hits.filter(({ ref }) => ref.archiveId !== undefined)).toEqual([]);
    });

    it("shows in one order what is at either place, and begins new sessions at the target", async () => {
      const { from, to } = openPlaces();
      const store = createMovingStore(to, from);
      const begin = (at: Pick<PostgresStore, "save">, names: readonly string[]): Promise<unknown> =>
        Promise.all(
          names.map((name) =>
            at.save(refOf(name), { sessionId: Buffer.from(name).toString("hex") }, { ifRevision: null }),
          ),
        );
      await begin(from, ["b", "d", "\u{1f600}"]);
      await begin(store, ["a", "c", "\uffee"]);
      expect((await to.list()).sessions).toHaveLength(3);
      for (const limit of [1, 2, 5, 100]) {
        const listed: string[] = [];
        for (let cursor: string | null | undefined; cursor !== null;) {
          const page = await store.list({ sort: "key", limit, ...(cursor === undefined ? {} : { cursor }) });
          expect(page.sessions.length).toBeLessThanOrEqual(limit);
          listed.push(...page.sessions.map(({ ref }) => ref.key));
          cursor = page.nextCursor;
        }
        expect(listed).toEqual(["a", "b", "c", "d", "\uffee", "\u{1f600}"].map((name) => refOf(name).key));
      }
      await expect(store.save(refOf("b"), { sessionId: "other" }, { ifRevision: null })).rejects.toMatchObject({
        code: "REVISION_CONFLICT",
      });
      for (const take of [
        () => store.move(refOf("a"), { kind: "rename", key: refOf("b").key }),
        () => store.fork?.fork(refOf("b"), refOf("a"), { sessionId: "f" }),
      ])
        await expect(take()).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    });

    it("waits for a session that is between the places, and says what helps when it stays there", async () => {
      const { from, to, target } = openPlaces();
      await from.save(refOf("one"), { sessionId: "one" }, { ifRevision: null });
      await from.append(refOf("one"), [draft("first")]);
      await to.list();
      const inner = new pg.Pool({ connectionString: url, max: 3 });
      inner.on("error", () => undefined);
      const ended = endingPool(url, inner, "before", (statement) => statement === "COMMIT");
      const broken = createPostgresStore({ pool: ended.pool, schema: target, notify: false });
      stores.push(broken);
      await broken.list();
      // The last statement of the target's transaction: the source has let go by then.
      const store = createMovingStore(to, from);
      for (let at = 1; ; at++) {
        ended.sent = 0;
        ended.at = at;
        await moveAll(from, broken).catch(() => undefined);
        const [here, there] = [await from.load(refOf("one")), await to.load(refOf("one"))];
        if (here === null && there === null) break;
        if (there !== null) return expect.unreachable("moved at once");
      }
      const tries = await Promise.allSettled([
        store.load(refOf("one")),
        store.append(refOf("one"), [draft("second")]),
        store.save(refOf("one"), { sessionId: "two" }, { ifRevision: null }),
      ]);
      for (const outcome of tries) {
        if (outcome.status === "fulfilled") return expect.unreachable("was done");
        expect(outcome.reason).toMatchObject({ code: "SESSION_BUSY", remedy: expect.stringContaining("relocate") });
      }
      const waiting = store.append(refOf("one"), [draft("third")]);
      await moveAll(from, to);
      expect((await waiting).records[0]?.seq).toBe(2);
      await inner.end();
    }, 60_000);

    it("purges and redacts the copy that a move leaves too, and no later run brings a purged session back", async () => {
      const { from, to } = openPlaces();
      for (const name of ["gone", "kept"]) {
        await from.save(refOf(name), { sessionId: name }, { ifRevision: null });
        await from.append(refOf(name), [draft("secret", `${name}-1`)]);
      }
      expect(await moveAll(from, to)).toEqual(["moved", "moved"]);
      const store = createMovingStore(to, from);
      await store.append(refOf("kept"), [draft("newer secret", "kept-2")]);
      await store.redact(refOf("kept"), ["kept-1", "kept-2"], { reason: "asked for" });
      await store.remove(refOf("gone"), { purge: true });
      const texts = async (): Promise<string> => {
        const found: unknown[] = [];
        for (const each of [from, to])
          for (const { ref } of (await each.list({ state: "any" })).sessions) found.push(await all(each.read(ref)));
        return JSON.stringify(found);
      };
      expect(await texts()).not.toContain("secret");
      expect(await moveAll(from, to)).toEqual([]);
      await expect(store.load(refOf("gone"))).resolves.toBeNull();
      // Purged at the target by a program that knows of nothing else.
      await to.remove(refOf("kept"), { purge: true });
      expect(await moveAll(from, to)).toEqual([]);
      await expect(to.load(refOf("kept"))).resolves.toBeNull();
      await expect(store.load(refOf("kept"))).resolves.toBeNull();
      await store.save(refOf("kept"), { sessionId: "new" }, { ifRevision: null });
    });
  },
);
