import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  readWindow,
  ThroughlineError,
  type PartialReply,
  type SearchFacet,
  type SessionRef,
  type VectorsFacet,
} from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { publicMethods } from "./public-methods.ts";
import { newSchema } from "./store-under-test.ts";
import { startProxy, type TcpProxy } from "./tcp-proxy.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", message: { role: "user", content: "Hello" } };

/** A call, and how many times it goes to the server and back. Several rows of one method differ after the comma. */
type Row = readonly [name: string, trips: number, call: (fixture: Fixture) => Promise<unknown>];

interface Fixture {
  readonly store: PostgresStore;
  readonly folder: string;
}

const refused = (work: Promise<unknown>): Promise<void> =>
  work.then(
    () => expect.unreachable("was not refused"),
    (error: unknown) => expect(ThroughlineError.isInstance(error)).toBe(true),
  );

async function through(pages: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _each of pages) count += 1;
  return count;
}

const partial: PartialReply = {
  v: 1,
  sessionId: "one",
  turnId: "t",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: null,
  api: null,
  model: null,
  text: "so far",
  updatedMs: 1,
};

const fileText = "bytes of a file";
const fileId = createHash("sha256").update(fileText).digest("hex");

async function* file(): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(fileText);
}

const searchOf = ({ search }: PostgresStore): SearchFacet => search ?? expect.unreachable("no search");
const other: SessionRef = { ...ref, key: "agent:main:other" };
const until = { leaseUntilMs: 4_000_000_000_000 };

const model = "test/model@4";
const vector = Float32Array.of(1, 2, 3, 4);
const vectorsOf = ({ vectors }: PostgresStore): VectorsFacet => vectors ?? expect.unreachable("no vectors");

/** In this order: each finds what the ones before it left. */
const rows: readonly Row[] = [
  ["save, a new session", 1, ({ store }) => store.save(ref, { sessionId: "one" }, { ifRevision: null })],
  ["append", 1, ({ store }) => store.append(ref, [draft, draft])],
  [
    "append, of 400 records",
    1,
    ({ store }) =>
      store.append(
        ref,
        Array.from({ length: 400 }, () => draft),
      ),
  ],
  [
    "append, with key, window and patch",
    1,
    ({ store }) => store.append(ref, [draft], { idempotencyKey: "k", entry: { label: "x" }, windowFromSeq: 2 }),
  ],
  ["append, again with its key", 1, ({ store }) => store.append(ref, [draft], { idempotencyKey: "k" })],
  ["append, refused", 1, ({ store }) => refused(store.append(ref, [draft], { expect: { head: "none" } }))],
  // The time, the row and a chunk; the commit in a transaction of six; what was stored.
  ["files.put", 10, ({ store }) => store.files.put(ref, file())],
  ["files.put, of bytes that are there", 14, ({ store }) => store.files.put(ref, file())],
  ["files.stat", 1, ({ store }) => store.files.stat(ref, fileId)],
  ["files.get", 2, ({ store }) => through(store.files.get(ref, fileId))],
  ["files.list", 1, ({ store }) => through(store.files.list(ref))],
  [
    "append, with a file",
    1,
    ({ store }) =>
      store.append(ref, [{ type: "message", message: { role: "user", content: [{ type: "file", fileId }] } }]),
  ],
  [
    "append, a turn that begins",
    1,
    ({ store }) =>
      store.append(ref, [draft], { turn: { action: "open", turnId: "t", owner: "o", fence: 1, ...until } }),
  ],
  [
    "append, a turn that is renewed",
    1,
    ({ store }) => store.append(ref, [], { turn: { action: "renew", fence: 1, ...until } }),
  ],
  ["partials.write", 3, ({ store }) => store.partials.write(ref, partial)],
  ["partials.read", 1, ({ store }) => store.partials.read(ref)],
  ["partials.remove", 1, ({ store }) => store.partials.remove(ref, 1)],
  ["append, a turn that ends", 1, ({ store }) => store.append(ref, [draft], { turn: { action: "close", fence: 1 } })],
  ["load", 1, ({ store }) => store.load(ref)],
  ["save", 1, ({ store }) => store.save(ref, { sessionId: "one" }, { ifRevision: 2 })],
  ["readWindow", 1, ({ store }) => store.readWindow(ref)],
  ["readWindow, core's", 1, ({ store }) => readWindow(store, ref)],
  ["read", 1, ({ store }) => through(store.read(ref))],
  ["read, the newest", 1, ({ store }) => through(store.read(ref, { order: "descending", limit: 3 }))],
  ["list", 1, ({ store }) => store.list()],
  ["list, all filters", 1, ({ store }) => store.list({ agentId: "main", keyPrefix: "agent", sinceMs: 1, limit: 1 })],
  ["list, by source", 2, ({ store }) => store.list({ importedFrom: { format: "pi", sourceId: "one" } })],
  // Who is behind; the records, and their index in a transaction of three; who is behind, and that it is noted; the hits.
  ["search.search, first", 11, ({ store }) => through(searchOf(store).search({ text: "hello" }))],
  ["search.search, any of", 3, ({ store }) => through(searchOf(store).search({ anyOf: ["hello", "absent"] }))],
  ["search.search", 2, ({ store }) => through(searchOf(store).search({ text: "hello" }))],
  ["search.lag", 1, async ({ store }) => expect(await searchOf(store).lag()).toBe(0)],
  ["vectors.pending", 2, ({ store }) => vectorsOf(store).pending(ref, { model })],
  // What is pending; the session, its origins, the number, the vectors, the gaps and the progress in a transaction.
  [
    "vectors.put, after what is pending",
    12,
    async ({ store }) => {
      const [range] = (await vectorsOf(store).pending(ref, { model })).ranges;
      const { fromSeq, toSeq, mark } = range ?? expect.unreachable("nothing is pending");
      const vectors = [{ firstSeq: 1, lastSeq: 1, part: 0, vector }];
      return vectorsOf(store).put(ref, { model, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors });
    },
  ],
  [
    "vectors.nearest",
    3,
    async ({ store }) => {
      const { namespace, agentId } = ref;
      expect(await vectorsOf(store).nearest({ namespace, agentId, model, vector })).toHaveLength(1);
    },
  ],
  ["vectors.forget", 5, async ({ store }) => expect(await vectorsOf(store).forget(ref)).toBe(1)],
  [
    "watch.watch, a page",
    1,
    async ({ store }) => {
      for await (const _page of store.watch.watch(ref, { afterSeq: 0, signal: new AbortController().signal })) break;
    },
  ],
  ["fork.sharers", 2, ({ store }) => store.fork.sharers?.(ref, [1]) ?? expect.unreachable()],
  // From here on transactions: BEGIN, what they do, COMMIT. None of them stands between a user and a reply.
  ["files.delete", 5, ({ store }) => store.files.delete(ref, fileId)],
  ["fork.fork", 9, ({ store }) => store.fork.fork(ref, other, { sessionId: "fork" })],
  ["move", 5, ({ store }) => store.move(other, { kind: "archive" })],
  [
    "redact, after a load",
    13,
    async ({ store }) => {
      const { headId } = (await store.load(ref))?.head ?? { headId: null };
      return store.redact(ref, [String(headId)], { reason: "test" });
    },
  ],
  ["remove", 4, ({ store }) => store.remove(ref)],
  ["remove, for good", 18, ({ store }) => store.remove({ ...other, archiveId: "fork" }, { purge: true })],
  // A slice of sessions each, whatever they hold.
  ["maintenance.verify", 9, ({ store }) => through(store.maintenance.verify())],
  ["maintenance.repair", 26, ({ store }) => through(store.maintenance.repair())],
  ["maintenance.backup", 50, ({ store, folder }) => store.maintenance.backup(join(folder, "store.sql"))],
  ["maintenance.purges", 1, ({ store }) => through(store.maintenance.purges?.() ?? expect.unreachable())],
  [
    "maintenance.addPurges",
    1,
    ({ store }) =>
      store.maintenance.addPurges?.("", [{ agentId: "main", digest: "0".repeat(32), purgedAtMs: 1 }]) ??
      expect.unreachable(),
  ],
  ["search.rebuild", 15, ({ store }) => Promise.resolve(searchOf(store).rebuild?.())],
  ["close", 0, ({ store }) => store.close()],
];

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `round trips over the wire, %s layout${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    let proxy: TcpProxy;
    const fixture: { store?: PostgresStore; folder: string } = { folder: "" };

    beforeAll(async () => {
      const { port } = new URL(url);
      proxy = await startProxy(Number(port));
      fixture.folder = await mkdtemp(join(tmpdir(), "throughline-trips-"));
      const through = new URL(url);
      through.port = String(proxy.port);
      fixture.store = createPostgresStore({
        url: through.href,
        schema: newSchema(),
        partitions: 2,
        layout,
        notify: false,
        // Behind one connection every call goes the same way, and none pays for a second greeting.
        maxConnections: 1,
      });
      await fixture.store.list();
    });

    afterAll(async () => {
      await fixture.store?.close();
      await proxy.close();
      await rm(fixture.folder, { recursive: true });
    });

    it("every method of a store stands in the table", () => {
      const store = fixture.store ?? expect.unreachable("no store");
      const named = new Set(rows.map(([name]) => name.split(",")[0]));
      expect([...named].toSorted()).toEqual(publicMethods(store));
    });

    // The layout has no trigger that removes a partial with what it belongs to: that is a statement of its own.
    const more = (name: string): number =>
      layout === "tenant" && ["move", "remove", "remove, for good"].includes(name) ? 1 : 0;

    it.each(rows)("%s: %i", async (name, plainTrips, call) => {
      const trips = plainTrips + more(name);
      const store = fixture.store ?? expect.unreachable("no store");
      const { traffic } = proxy;
      const asked = (): readonly number[] => [traffic.flights, traffic.said("Q", "S"), traffic.said("<Z")];
      const before = asked();
      await call({ ...fixture, store });
      // The client's own end of the connection is heard after the call: what closing says is no question.
      const [flights = 0, questions = 0, answers = 0] = asked().map((count, index) => count - (before[index] ?? 0));
      expect({ flights, questions, answers }).toEqual({ flights: trips, questions: trips, answers: trips });
    });
  },
);
