import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSession, sessionRef, userMessage } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { type StartedServer, startServer } from "./start-server.ts";
import { openTurn } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const words = "where the heron key is kept";
const notes = "agent:main:cli:direct:notes";
let directory = "";
let store: SessionStore;
let server: StartedServer;
let token = "";

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "throughline-server-"));
  const path = join(directory, "sessions.db");
  server = await startServer({ openStore: async () => createSqliteStore({ path }), port: 0 });
  // Another program beside the server, on the same database.
  store = createSqliteStore({ path });
  token = await tokenFor(["read", "write", "delete"]);
});
afterEach(async () => {
  await server.close();
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

async function tokenFor(scopes: readonly ("read" | "write" | "delete")[]): Promise<string> {
  const { text } = await server.tokens.create({ namespace: "", agents: "*", scopes, expiresAtMs: null }, "tests");
  return text;
}

async function begin(key: string): Promise<SessionRef> {
  const ref = sessionRef({ agentId: "main", key });
  await openSession(store, ref, { random: systemRandom });
  await store.append(ref, [userMessage(words)]);
  return ref;
}

async function recordsOf(ref: SessionRef): Promise<number | undefined> {
  return (await store.load(ref))?.head.lastSeq;
}

interface Answered {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function remove(key: string, query = "", secret = token): Promise<Answered> {
  const response = await fetch(`${server.url}/api/v1/sessions/${encodeURIComponent(key)}${query}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${secret}` },
  });
  return { status: response.status, body: (await response.json()) as Answered["body"] };
}

/** Whether any file of the store holds the words. */
function keepsWords(): boolean {
  return readdirSync(directory).some((name) => readFileSync(join(directory, name)).includes(words));
}

describe("DELETE /api/v1/sessions/{session}", () => {
  it("archives a session, which another program can restore", async () => {
    const ref = await begin(notes);
    const { status, body } = await remove(notes);
    expect([status, body["state"]]).toEqual([200, "archived"]);
    expect(await store.load(ref)).toBeNull();
    const { sessions } = await store.list({ agentId: "main", state: "archived" });
    const [archived] = sessions;
    if (archived === undefined) throw new Error("no archive");
    const restored = await store.move(archived.ref, { kind: "restore" });
    expect(await recordsOf(restored.ref)).toBe(1);
  });

  it("purges a session and every copy of its words", async () => {
    const ref = await begin(notes);
    expect(keepsWords()).toBe(true);
    expect(await remove(notes, "?purge=true")).toMatchObject({ status: 200, body: { kind: "removed" } });
    expect(await store.load(ref)).toBeNull();
    await store.close();
    await server.close();
    expect(keepsWords()).toBe(false);
  });

  it("refuses the main session", async () => {
    const ref = await begin("agent:main:main");
    for (const query of ["", "?purge=true", "?waitMs=10"]) {
      const { status, body } = await remove("agent:main:main", query);
      expect([status, body["code"]], query).toEqual([409, "SESSION_PROTECTED"]);
    }
    expect(await recordsOf(ref)).toBe(1);
  });

  it("refuses a session with a running turn, or waits for its end", async () => {
    const ref = await begin(notes);
    const turn = await openTurn(store, ref, { owner: "another program" });
    const records = await recordsOf(ref);
    expect(await remove(notes)).toMatchObject({ status: 409, body: { code: "SESSION_BUSY" } });
    expect(await remove(notes, "?purge=true&waitMs=50")).toMatchObject({ status: 409, body: { code: "SESSION_BUSY" } });
    expect(await recordsOf(ref)).toBe(records);
    const waiting = remove(notes, "?waitMs=30000");
    await turn.close();
    expect(await waiting).toMatchObject({ status: 200, body: { state: "archived" } });
  });

  it("leaves sessions alone for whoever may not delete", async () => {
    const ref = await begin(notes);
    const writer = await tokenFor(["read", "write"]);
    expect((await remove(notes, "", writer)).status).toBe(403);
    expect((await remove(notes, "?force=true&purge=true", writer)).status).toBe(403);
    expect((await remove(notes, "", "no token")).status).toBe(401);
    expect((await remove("agent:main:cli:direct:other")).status).toBe(404);
    expect(await recordsOf(ref)).toBe(1);
  });
});
