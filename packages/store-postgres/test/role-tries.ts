import { createHash } from "node:crypto";
import { join } from "node:path";
import { inspect } from "node:util";
import type { PartialReply, SearchFacet, SessionRef, VectorsFacet } from "@throughline/core";
import type { PostgresStore } from "@throughline/store-postgres";
import { expect } from "vitest";

export const own: SessionRef = { namespace: "", agentId: "main", key: "agent:main:own" };
export const theirs: SessionRef = { namespace: "", agentId: "other", key: "agent:other:one" };
export const secret = "Zanzibar";
export const say = (content: string): { readonly type: string; readonly message: object } => ({
  type: "message",
  message: { role: "user", content },
});

export interface Fixture {
  readonly schema: string;
  readonly folder: string;
  /** The owner of the tables, who sees everything. */
  readonly owner: PostgresStore;
  /** A role that has been given the agent `main`. */
  readonly store: PostgresStore;
  readonly roleUrl: string;
}

export const sayFile = (fileId: string): { readonly type: string; readonly message: object } => ({
  type: "message",
  message: { role: "user", content: [{ type: "file", fileId }] },
});

export const searchOf = ({ search }: PostgresStore): SearchFacet => search ?? expect.unreachable("no search");

const theirScope = { namespace: "", agentId: "other" };
const model = "test/model@4";
const vector = Float32Array.of(1, 2, 3, 4);
const vectorsOf = ({ vectors }: PostgresStore): VectorsFacet => vectors ?? expect.unreachable("no vectors");

type PurgesOf = Required<Pick<PostgresStore["maintenance"], "purges" | "addPurges">>;
const purgesOf = ({ maintenance }: PostgresStore): PurgesOf => maintenance as PurgesOf;

export async function all(pages: AsyncIterable<unknown>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const each of pages) found.push(each);
  return found;
}

/** A method tried on what belongs to another agent, and what comes of it: an error's code, or nothing of theirs. */
export type Try = readonly [method: string, wanted: string, attempt: (fixture: Fixture) => Promise<unknown>];

/** The id of the file that `fillAgent` gives the other agent. */
export const theirFile: string = createHash("sha256").update(`file of ${secret}`).digest("hex");

export async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

export const until = { leaseUntilMs: 4_000_000_000_000 };

export function partialOf(sessionId: string): PartialReply {
  const call = { turnId: "t", fence: 1, step: 1, attempt: 0, afterSeq: 1, provider: null, api: null, model: null };
  return { v: 1, sessionId, ...call, text: secret, updatedMs: 1 };
}

export const tries: readonly Try[] = [
  ["append", "SESSION_NOT_FOUND", ({ store }) => store.append(theirs, [say("mine")])],
  [
    "append, resuming a turn",
    "SESSION_NOT_FOUND",
    ({ store }) =>
      store.append(theirs, [say("mine")], { turn: { action: "open", turnId: "t", owner: "me", fence: 1, ...until } }),
  ],
  [
    "append, with their key",
    "SESSION_NOT_FOUND",
    ({ store }) => store.append(theirs, [say(secret)], { idempotencyKey: "k" }),
  ],
  ["load", "nothing", ({ store }) => store.load(theirs)],
  [
    "save",
    "REVISION_CONFLICT",
    ({ store }) => store.save(theirs, { sessionId: "theirs", label: "mine" }, { ifRevision: 2 }),
  ],
  [
    "save, a session of theirs",
    "STORE_READ_ONLY",
    ({ store }) => store.save({ ...theirs, key: "agent:other:new" }, { sessionId: "new" }, { ifRevision: null }),
  ],
  [
    "save, in the place of theirs",
    "STORE_READ_ONLY",
    ({ store }) => store.save(theirs, { sessionId: "new" }, { ifRevision: null }),
  ],
  ["read", "SESSION_NOT_FOUND", ({ store }) => all(store.read(theirs))],
  ["readWindow", "SESSION_NOT_FOUND", ({ store }) => store.readWindow(theirs)],
  ["list", "nothing", async ({ store }) => (await store.list({ agentId: "other", state: "any" })).sessions],
  ["partials.read", "SESSION_NOT_FOUND", ({ store }) => store.partials.read(theirs)],
  ["partials.write", "SESSION_NOT_FOUND", ({ store }) => store.partials.write(theirs, partialOf("theirs"))],
  ["partials.remove", "nothing", ({ store }) => store.partials.remove(theirs, 1)],
  ["move", "SESSION_NOT_FOUND", ({ store }) => store.move(theirs, { kind: "archive" })],
  ["redact", "SESSION_NOT_FOUND", ({ store }) => store.redact(theirs, ["secret-1"], { reason: "mine" })],
  ["remove", "SESSION_NOT_FOUND", ({ store }) => store.remove(theirs, { purge: true })],
  [
    "fork.fork",
    "SESSION_NOT_FOUND",
    ({ store }) => store.fork.fork(theirs, { ...theirs, key: "agent:other:f" }, { sessionId: "f" }),
  ],
  [
    "fork.fork, into their agent",
    "KEY_AGENT_MISMATCH",
    ({ store }) => store.fork.fork(own, { ...theirs, key: "agent:other:f" }, { sessionId: "f" }),
  ],
  ["fork.sharers", "SESSION_NOT_FOUND", async ({ store }) => await store.fork.sharers?.(theirs, [1])],
  [
    "watch.watch",
    "SESSION_NOT_FOUND",
    ({ store }) => all(store.watch.watch(theirs, { afterSeq: 0, signal: AbortSignal.timeout(500) })),
  ],
  ["search.search", "nothing", ({ store }) => all(searchOf(store).search({ text: secret, state: "any" }))],
  [
    "search.search, by key",
    "nothing",
    ({ store }) => all(searchOf(store).search({ text: secret, agentId: "other", key: theirs.key })),
  ],
  [
    "search.lag",
    "nothing",
    async ({ store }) => ((await searchOf(store).lag()) === 0 ? [] : ["their records counted"]),
  ],
  ["search.rebuild", "nothing", ({ store }) => Promise.resolve(searchOf(store).rebuild?.())],
  [
    "vectors.pending",
    "nothing",
    async ({ store }) => {
      const { records, hasOthers } = await vectorsOf(store).pending(theirScope, { model });
      return records === 0 && !hasOthers ? [] : ["their records counted"];
    },
  ],
  ["vectors.nearest", "nothing", ({ store }) => vectorsOf(store).nearest({ ...theirScope, model, vector })],
  [
    "vectors.put, with their mark",
    "nothing",
    async ({ owner, store }) => {
      const [range] = (await vectorsOf(owner).pending(theirScope, { model })).ranges;
      const { fromSeq, toSeq, mark } = range ?? expect.unreachable("they have records");
      const put = { model, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors: [] };
      return (await vectorsOf(store).put(theirs, put)) ? ["put"] : [];
    },
  ],
  [
    "vectors.forget",
    "nothing",
    async ({ store }) => ((await vectorsOf(store).forget(theirScope)) === 0 ? [] : ["forgotten"]),
  ],
  ["maintenance.verify", "nothing", ({ store }) => all(store.maintenance.verify({ full: true }))],
  [
    "maintenance.repair",
    "nothing",
    async ({ store }) => (await all(store.maintenance.repair())).filter((found) => inspect(found).includes("other")),
  ],
  [
    "maintenance.backup",
    "STORE_READ_ONLY",
    ({ store, folder }) => store.maintenance.backup(join(folder, "theirs.sql")),
  ],
  [
    "maintenance.purges",
    "nothing",
    async ({ store }) => (await all(purgesOf(store).purges())).filter((marks) => inspect(marks).includes("other")),
  ],
  ["maintenance.purges, of an agent", "nothing", ({ store }) => all(purgesOf(store).purges({ agentId: "other" }))],
  [
    "maintenance.addPurges",
    "STORE_READ_ONLY",
    ({ store }) => purgesOf(store).addPurges("", [{ agentId: "other", digest: "0".repeat(32), purgedAtMs: 1 }]),
  ],
  ["files.put", "STORE_READ_ONLY", ({ store }) => store.files.put(theirs, bytesOf("mine"))],
  [
    "files.put, of bytes they have",
    "STORE_READ_ONLY",
    ({ store }) => store.files.put(theirs, bytesOf(`file of ${secret}`)),
  ],
  ["files.get", "FILE_NOT_FOUND", ({ store }) => all(store.files.get(theirs, theirFile))],
  ["files.get, at its own agent", "FILE_NOT_FOUND", ({ store }) => all(store.files.get(own, theirFile))],
  ["files.stat", "nothing", ({ store }) => store.files.stat(theirs, theirFile)],
  ["files.delete", "nothing", async ({ store }) => ((await store.files.delete(theirs, theirFile)) ? "deleted" : [])],
  ["files.list", "nothing", ({ store }) => all(store.files.list(theirs))],
  ["close", "nothing", ({ store }) => store.close()],
];
