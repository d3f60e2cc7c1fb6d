import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { sessionRef, type SessionStore, userMessage } from "@throughline/core";
import { deleteUser, forkSession, throughlineDraft, type UserDeletion } from "@throughline/core/internal";
import { offline } from "@throughline/models/offline";
import { createServer } from "@throughline/server";
import { createSessions } from "@throughline/session";
import { openHttpStore } from "@throughline/store-http";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createPostgresStore } from "@throughline/store-postgres";
import { createSqliteStore } from "@throughline/store-sqlite";
import { replaceMembers } from "@throughline/test-kit";
import { startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { kinds } from "./json-shapes.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const postgres = await startPostgres();
const endings: (() => unknown)[] = [];
if (!("unavailable" in postgres)) endings.push(() => postgres.stop());
afterAll(async () => {
  for (const end of endings.toReversed()) await end();
});

interface Place {
  readonly store: SessionStore;
  /** The folder whose files must not hold the user's words after a deletion; null where there is none. */
  readonly folder: string | null;
}

async function place(kind: string): Promise<Place> {
  if (kind === "memory") return { store: createMemoryStore(), folder: null };
  if (kind === "postgres") {
    const { url } = postgres as { readonly url: string };
    return { store: createPostgresStore({ url, schema: `user_${newId().replaceAll("-", "_")}` }), folder: null };
  }
  const directory = temporaryDirectory();
  endings.push(() => directory.remove());
  const path = join(directory.path, "sessions.db");
  if (kind === "sqlite") return { store: createSqliteStore({ path }), folder: directory.path };
  if (kind === "jsonl") return { store: createJsonlStore({ root: directory.path }), folder: directory.path };
  const limits = { requestsPerMinute: 1_000_000, requestBurst: 1_000_000 };
  const server = await createServer({ openStore: () => createSqliteStore({ path }), port: 0, limits });
  endings.push(() => server.close());
  const rights = { namespace: "*", agents: "*", scopes: ["read", "write", "delete"], expiresAtMs: null } as const;
  const { text } = await server.tokens.create(rights, "tests");
  return { store: await openHttpStore({ url: server.url, token: text }), folder: directory.path };
}

let ids = 0;
const newId = (): string => `id-${(ids += 1)}`;

const secret = "the heron key is under the boat";
const prefix = "agent:main:web:direct:user-4";

function filesWith(folder: string, text: string): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => existsSync(path) && statSync(path).isFile() && readFileSync(path).includes(text));
}

/** Sessions of user 4 in every state, and those of users 42 and 5. */
async function fill(store: SessionStore, namespace = ""): Promise<void> {
  const begin = async (key: string, text: string, entry = {}): Promise<ReturnType<typeof sessionRef>> => {
    const ref = sessionRef({ namespace, key });
    await store.save(ref, { sessionId: newId(), ...entry }, { ifRevision: null });
    await store.append(ref, [userMessage(text), throughlineDraft("note", { kind: "x", text })]);
    return ref;
  };
  const own = await begin(prefix, secret);
  const old = await begin(`${prefix}:thread:1`, secret);
  await store.move(old, { kind: "archive" });
  await begin(`${prefix}:thread:1`, secret);
  await forkSession(store, own, sessionRef({ namespace, key: `${prefix}-fork` }), { sessionId: newId() });
  const spawned = await begin("agent:work:subagent:7", secret, { spawnedBy: prefix });
  await store.append(spawned, [throughlineDraft("exchange", { api: "x", frame: [], errorBody: secret })]);
  const turn = { action: "open", turnId: "t", owner: "tests", leaseUntilMs: 1, fence: 1 } as const;
  const { head } = await store.append(spawned, [], { turn });
  const partial = { v: 1, sessionId: head.sessionId, turnId: "t", fence: head.fence, step: 1, attempt: 0 } as const;
  const model = { provider: null, api: null, model: "m", afterSeq: 0, updatedMs: 1 };
  await store.partials?.write(spawned, { ...partial, ...model, text: secret });
  await begin("agent:main:web:direct:user-42", "other words");
  await begin("agent:main:web:direct:user-5", "other words");
}

async function* inOne(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

async function keysOf(store: SessionStore, namespace = ""): Promise<readonly string[]> {
  return (await store.list({ namespace, state: "any", sort: "key" })).sessions.map(({ ref }) => ref.key);
}

const shown = ({ sessions }: UserDeletion): readonly unknown[] =>
  sessions.map(({ ref, because }) => [ref.key, ref.archiveId === undefined, because]).toSorted();

const expected = [
  ["agent:main:web:direct:user-4", true, "key"],
  ["agent:main:web:direct:user-4-fork", true, "fork"],
  ["agent:main:web:direct:user-4:thread:1", false, "key"],
  ["agent:main:web:direct:user-4:thread:1", true, "key"],
  ["agent:work:subagent:7", true, "spawned"],
];
const stores = ["memory", "jsonl", "sqlite", "http", ...("unavailable" in postgres ? [] : ["postgres"])];

describe.each(stores)("a user in a store, over %s", (kind) => {
  it("is counted, and deleted in every state with forks and spawned sessions; others stay", async () => {
    const { store, folder } = await place(kind);
    await fill(store);
    await using sessions = createSessions({ store, model: offline() });
    const plan = await sessions.deleteUser({ keyPrefix: prefix }, { dryRun: true });
    expect(shown(plan)).toEqual(expected);
    expect([plan.state, plan.counts]).toEqual([
      "planned",
      {
        sessions: 5,
        archived: 1,
        records: 11,
        messages: 5,
        summaries: 0,
        notes: 5,
        wireFrames: 1,
        files: store.files === undefined ? null : 0,
        unusedFiles: store.files === undefined ? null : 0,
        partials: store.capabilities.partials ? 1 : 0,
        searchRows: store.capabilities.search ? 5 : null,
        unread: 0,
      },
    ]);
    expect(await keysOf(store)).toHaveLength(7);
    const deleted = await sessions.deleteUser({ keyPrefix: prefix });
    expect([deleted.state, shown(deleted), deleted.counts]).toEqual(["deleted", expected, plan.counts]);
    expect(deleted.notReached.join(" ")).toContain("Backups");
    expect(await keysOf(store)).toEqual(["agent:main:web:direct:user-42", "agent:main:web:direct:user-5"]);
    expect((await sessions.deleteUser({ keyPrefix: prefix })).counts.sessions).toBe(0);
    if (store.search !== undefined) {
      const hits = [];
      for await (const hit of store.search.search({ text: "heron" })) hits.push(hit);
      expect(hits).toEqual([]);
    }
    await store.close();
    if (folder !== null && kind !== "http") expect(filesWith(folder, "heron")).toEqual([]);
  });

  it("is a whole namespace, with the main session of its agent", async () => {
    const { store } = await place(kind);
    await fill(store, "user-4");
    await fill(store);
    await store.save(
      sessionRef({ namespace: "user-4", key: "agent:main:main" }),
      { sessionId: "m4" },
      { ifRevision: null },
    );
    // Files that were put and never sent: of an agent with sessions, and of one without.
    for (const [namespace, agentId] of [
      ["user-4", "main"],
      ["user-4", "idle"],
      ["", "main"],
    ] as const)
      await store.files?.put({ namespace, agentId }, inOne(secret));
    await using sessions = createSessions({ store, model: offline(), agentId: "idle" });
    const unusedFiles = store.files === undefined ? null : 2;
    const plan = await sessions.deleteUser({ namespace: "user-4" }, { dryRun: true });
    const deleted = await sessions.deleteUser({ namespace: "user-4" });
    for (const { counts } of [plan, deleted]) expect(counts).toMatchObject({ sessions: 8, archived: 1, unusedFiles });
    expect([await keysOf(store, "user-4"), (await keysOf(store)).length]).toEqual([[], 7]);
    const left = async (namespace: string, agentId: string): Promise<number> =>
      (await Array.fromAsync(store.files?.list({ namespace, agentId }) ?? [])).flat().length;
    if (store.files !== undefined)
      expect([await left("user-4", "main"), await left("user-4", "idle"), await left("", "main")]).toEqual([0, 0, 1]);
    await store.close();
  });

  it("is deleted to the end by a second call, wherever the first one stops", async () => {
    for (let stopAt = 0; stopAt < 5; stopAt++) {
      const { store } = await place(kind);
      await fill(store);
      let removed = 0;
      const dying = replaceMembers(store, {
        remove: (...args: Parameters<SessionStore["remove"]>) => {
          if (removed++ === stopAt) throw new Error("killed");
          return store.remove(...args);
        },
      });
      const user = { namespace: "", keyPrefix: prefix };
      await expect(deleteUser(dying, user)).rejects.toThrow("killed");
      const rest = await deleteUser(store, user);
      expect([rest.counts.sessions, (await keysOf(store)).length]).toEqual([5 - stopAt, 2]);
      await store.close();
    }
  });
});

describe("a user that would be everybody, or that is busy", () => {
  it("is refused", async () => {
    const store = createMemoryStore();
    await using sessions = createSessions({ store, model: offline() });
    for (const user of [
      { namespace: "" },
      { keyPrefix: "agent:main" },
      { keyPrefix: "agent:main:" },
      { keyPrefix: "" },
      {},
    ])
      await expect(sessions.deleteUser(user as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await sessions.open("agent:main:main");
    await expect(sessions.deleteUser({ keyPrefix: "agent:main:main" })).rejects.toMatchObject({
      code: "SESSION_PROTECTED",
    });
    const ref = sessionRef({ key: prefix });
    await store.save(ref, { sessionId: "s" }, { ifRevision: null });
    const leaseUntilMs = Date.now() + 60_000;
    await store.append(ref, [], { turn: { action: "open", turnId: "t", owner: "tests", leaseUntilMs, fence: 1 } });
    await expect(sessions.deleteUser({ keyPrefix: prefix }, { waitMs: 0 })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    expect(await keysOf(store)).toHaveLength(2);
  });
});

describe("throughline delete --user", () => {
  it("prints the plan, asks with its counts, and deletes with --yes", async () => {
    const directory = temporaryDirectory();
    endings.push(() => directory.remove());
    const path = join(directory.path, "sessions.db");
    const store = createSqliteStore({ path });
    await fill(store);
    const run = (...args: string[]): ReturnType<typeof runHere> =>
      runHere(directory.path, ["--store", `sqlite:${path}`, "delete", ...args]);
    const planned = await run("--user", prefix, "--dry-run", "--json");
    expect([planned.code, kinds(planned.stdout)]).toEqual([0, ["userDeletion"]]);
    expect(objects(planned.stdout)[0]).toMatchObject({ state: "planned", counts: { sessions: 5, messages: 5 } });
    const asked = await run("--user", prefix);
    expect([asked.code, asked.stderr.includes("5 sessions"), (await keysOf(store)).length]).toEqual([2, true, 7]);
    const done = await run("--user", prefix, "--yes");
    expect([done.code, done.stderr.includes("Backups")]).toEqual([0, true]);
    expect(done.stdout).toContain("agent:work:subagent:7");
    expect(await keysOf(store)).toHaveLength(2);
    expect((await run("--whole-namespace", "--yes")).stderr).toContain("every user");
    expect((await run("--user", prefix, "--whole-namespace", "--yes")).code).toBe(2);
    expect((await run("--user", prefix, "some-key")).code).toBe(2);
    expect((await run("some-key", "--dry-run")).code).toBe(2);
    expect((await run()).code).toBe(2);
    await store.close();
  });
});
