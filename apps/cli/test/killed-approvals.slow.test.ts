import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it, vi } from "vitest";
import { sessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { createServer } from "@throughline/server";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createPostgresStore } from "@throughline/store-postgres";
import { createSqliteStore } from "@throughline/store-sqlite";
import { startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import { temporaryDirectory } from "./harness.ts";

const program = bundledWorker(new URL("./approving-program.ts", import.meta.url));
const postgres = await startPostgres();
vi.setConfig({ testTimeout: 600_000 });
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.toReversed()) await end();
});
if (!("unavailable" in postgres)) endings.push(() => postgres.stop());

interface Place {
  readonly args: readonly [kind: string, place: string, token: string, session: string];
  readonly effects: string;
  open(): SessionStore;
}

/** A place of its own, where no session is. */
async function newPlace(kind: string): Promise<Place> {
  const folder = temporaryDirectory();
  endings.push(() => folder.remove());
  const name = `home-${endings.length}`;
  const effects = join(folder.path, "effects.txt");
  const sqlite = (): SessionStore => createSqliteStore({ path: join(folder.path, "sessions.db") });
  if (kind === "sqlite") return { args: [kind, folder.path, "", name], effects, open: sqlite };
  if (kind === "jsonl")
    return { args: [kind, folder.path, "", name], effects, open: () => createJsonlStore({ root: folder.path }) };
  if (kind === "postgres") {
    const { url } = postgres as { readonly url: string };
    return { args: [kind, url, "", name], effects, open: () => createPostgresStore({ url }) };
  }
  const limits = { requestsPerMinute: 1_000_000, requestBurst: 1_000_000 };
  const server = await createServer({ openStore: sqlite, port: 0, limits });
  endings.push(() => server.close());
  const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
  const { text } = await server.tokens.create(rights as never, "program");
  return { args: [kind, server.url, text, name], effects, open: sqlite };
}

function start({ args, effects }: Place, mode: string): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [program, ...args, effects, mode]);
  child.stderr.pipe(process.stderr);
  return child;
}

interface Said {
  readonly is: string;
  readonly pending?: readonly string[];
  readonly outcome?: string;
  readonly code?: string;
}

/** What the program says, up to a word or a number of lines. */
async function linesOf(child: ChildProcessWithoutNullStreams, last: string, most = Infinity): Promise<readonly Said[]> {
  const said: Said[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(JSON.parse(line) as Said);
    if (said.at(-1)?.is === last || said.length >= most) break;
  }
  return said;
}

async function kill(child: ChildProcessWithoutNullStreams): Promise<void> {
  const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
  child.kill("SIGKILL");
  await exited;
}

async function run(place: Place, mode: string): Promise<readonly Said[]> {
  const child = start(place, mode);
  const closed = once(child, "close");
  const said = await linesOf(child, "never");
  await closed;
  return said;
}

const effectsOf = ({ effects }: Place): readonly string[] =>
  existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : [];

/** What the log says of each call: its results, and whether a decision allowed it before. */
async function callsOf(place: Place): Promise<Map<string, { readonly results: string[]; isAllowed: boolean }>> {
  await using store = place.open();
  const ref = sessionRef({ key: `agent:main:cli:direct:${place.args[3]}` });
  const records: StoredRecord[] = [];
  // The first process may have been killed before it created the session.
  if ((await store.load(ref)) !== null) for await (const page of store.read(ref)) records.push(...page.records);
  const calls = new Map<string, { readonly results: string[]; isAllowed: boolean }>();
  for (const { record } of records) {
    const { role, content, toolCallId } = (record["message"] ?? {}) as Readonly<Record<string, unknown>>;
    if (role === "assistant")
      for (const block of content as readonly { readonly type: string; readonly id: string }[])
        if (block.type === "toolCall") calls.set(block.id, { results: [], isAllowed: false });
    if (role === "toolResult") calls.get(toolCallId as string)?.results.push(JSON.stringify(content));
    const { callId, decision } = (record["data"] ?? {}) as Readonly<Record<string, unknown>>;
    const call = calls.get(callId as string);
    if (call !== undefined && record["customType"] === "throughline.approval") call.isAllowed ||= decision === "once";
  }
  return calls;
}

const kinds = ["sqlite", "jsonl", "http", ...("unavailable" in postgres ? [] : ["postgres"])];

describe.each(kinds)("a program with approvals, over %s", (kind) => {
  it("is killed at the question: the next process lists the calls, approves, and each runs once", async () => {
    const place = await newPlace(kind);
    const first = start(place, "ask");
    await linesOf(first, "asked");
    await kill(first);
    const [opened, done] = await run(place, "approve");
    expect(opened?.pending).toHaveLength(3);
    expect(done).toEqual({ is: "done", outcome: "done" });
    expect(effectsOf(place).toSorted()).toEqual(opened?.pending?.toSorted());
    for (const { results } of (await callsOf(place)).values())
      expect(results).toEqual([expect.stringContaining("paid")]);
  });

  it("approves in two processes at once, and each call runs once", async () => {
    const place = await newPlace(kind);
    const first = start(place, "ask");
    await linesOf(first, "asked");
    await kill(first);
    // Under load the first process could end before the second one opens, so both wait until both have opened.
    const children = [start(place, "approve-together"), start(place, "approve-together")];
    const opened = await Promise.all(children.map((child) => linesOf(child, "open")));
    expect(opened.map(([line]) => line?.pending?.length)).toEqual([3, 3]);
    for (const child of children) child.stdin.end("decide");
    const both = await Promise.all(children.map((child) => linesOf(child, "never")));
    expect(both.flat().filter(({ is }) => is === "done")).toHaveLength(1);
    const effects = effectsOf(place);
    expect([effects.length, new Set(effects).size]).toEqual([3, 3]);
  });

  it("asks with a deadline and ends: two later processes refuse each call once, and nothing runs", async () => {
    const place = await newPlace(kind);
    await run(place, "ask-briefly");
    await sleep(400);
    const children = [start(place, "approve-together"), start(place, "approve-together")];
    const opened = await Promise.all(children.map((child) => linesOf(child, "open")));
    expect(opened.map(([line]) => line?.pending)).toEqual([[], []]);
    for (const child of children) child.stdin.end("decide");
    const both = await Promise.all(children.map((child) => linesOf(child, "never")));
    expect(both.flat().filter(({ is }) => is === "done")).toHaveLength(1);
    expect(effectsOf(place)).toEqual([]);
    const calls = [...(await callsOf(place)).values()];
    expect(calls).toHaveLength(3);
    for (const { results } of calls) expect(results).toEqual([expect.stringContaining("Nobody decided")]);
  });

  const rounds = testSize({ short: 10, long: 100 });
  it(`is killed ${rounds} times at any moment: no call runs twice or without a decision`, async () => {
    const place = await newPlace(kind);
    const killOnce = async (): Promise<void> => {
      const child = start(place, "loop");
      await linesOf(child, "never", 1 + randomInt(40));
      await kill(child);
    };
    for (let round = 0; round < rounds; round++) await killOnce();
    // The moments are random, so few rounds may reach a reply. More rounds follow, at most as many again.
    for (let more = 0; more < rounds && (await callsOf(place)).size <= rounds; more++) await killOnce();
    expect((await run(place, "drain")).at(-1)).toEqual({ is: "end" });
    const effects = effectsOf(place);
    expect(new Set(effects).size).toBe(effects.length);
    const calls = await callsOf(place);
    expect(calls.size).toBeGreaterThan(rounds);
    for (const [callId, { results, isAllowed }] of calls) {
      expect(results.length).toBeLessThan(2);
      // A process that is killed between the end of a dead turn and its own turn leaves such a call without a result. The
      // model then reads that it may have run.
      const mayHaveRun = results[0]?.includes("may have") ?? true;
      if (mayHaveRun || effects.includes(callId)) expect([callId, isAllowed]).toEqual([callId, true]);
      if (!mayHaveRun) expect([callId, effects.includes(callId)]).toEqual([callId, results[0]?.includes("paid")]);
    }
  });
});
