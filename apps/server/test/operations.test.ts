import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { systemClock } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createPostgresStore } from "@throughline/store-postgres";
import { createSqliteStore } from "@throughline/store-sqlite";
import { isLongRun } from "../../../tools/test-size.ts";
import { startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { serve, type Serving } from "./serving.ts";

const closing: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function served(options: Parameters<typeof serve>[0]): Promise<Serving> {
  const serving = await serve(options);
  closing.push(() => serving.close());
  return serving;
}

function folder(): string {
  const path = mkdtempSync(join(quickFolder(), "throughline-operations-"));
  closing.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A clock that stands days ahead. */
function later(days: () => number): typeof systemClock {
  return { ...systemClock, nowMs: () => systemClock.nowMs() + days() * 86_400_000 };
}

const postgres = isLongRun ? await startPostgres() : { unavailable: "is part of npm run test:long" };
afterAll(() => ("unavailable" in postgres ? undefined : postgres.stop()));

const stores = {
  memory: () => createMemoryStore(),
  jsonl: () => createJsonlStore({ root: folder() }),
  sqlite: () => createSqliteStore({ path: join(folder(), "sessions.db") }),
  ...("unavailable" in postgres
    ? {}
    : {
        postgres: () => createPostgresStore({ url: postgres.url, schema: `bytes_${randomUUID().replaceAll("-", "")}` }),
      }),
};

describe("bytes of a namespace", () => {
  it.each(Object.entries(stores))("are in stats and metrics: %s", async (_name, openStore) => {
    let days = 0;
    const serving = await served({ openStore, clock: later(() => days) });
    const notes = (count: number): object[] =>
      Array.from({ length: count }, () => ({ type: "note", text: "x".repeat(1000) }));
    await serving.begin("one", notes(20));
    await serving.begin("agent:work:two", notes(10));
    const tenant = await serving.tokenOf({ namespace: "tenant" });
    await serving.begin("three", notes(3), tenant);
    const counted = async (path: string, token = serving.token): Promise<number> => {
      let bytes: unknown = null;
      await expect
        .poll(async () => (bytes = (await serving.ask("GET", path, { token })).body["recordBytes"]))
        .not.toBeNull();
      return Number(bytes);
    };
    const all = await counted("/stats");
    expect(all).toBeGreaterThan(30_000);
    expect(all).toBeLessThan(45_000);
    expect((await counted("/stats?agent=work")) / all).toBeCloseTo(1 / 3, 1);
    expect(await counted("/stats", tenant)).toBeLessThan(5000);
    const mine = await serving.tokenOf({ namespace: "", agents: ["work"] });
    expect(await counted("/stats", mine)).toBe(await counted("/stats?agent=work"));
    // What was counted stands for a minute; then only what is new is read.
    await serving.ask("POST", "/sessions/one/records", { body: { drafts: notes(20) } });
    expect(await counted("/stats")).toBe(all);
    days = 0.01;
    await expect.poll(() => counted("/stats")).toBeGreaterThan(50_000);
    const text = await (
      await fetch(`${serving.url}/metrics`, { headers: { authorization: `Bearer ${serving.token}` } })
    ).text();
    expect(text).toMatch(/^throughline_namespace_record_bytes\{namespace=""\} \d{5}$/m);
    expect(text).toMatch(/^throughline_namespace_record_bytes\{namespace="tenant"\} \d{4}$/m);
    expect(serving.log()).not.toContain('"level":50');
  });

  it("fall when records are redacted and sessions purged", async () => {
    let days = 0;
    const serving = await served({ clock: later(() => days) });
    await serving.begin("long", [{ type: "note", id: "big", text: "x".repeat(100_000) }]);
    await serving.begin("gone", [{ type: "note", text: "x".repeat(100_000) }]);
    const bytes = async (): Promise<number> => Number((await serving.ask("GET", "/stats")).body["recordBytes"]);
    await expect.poll(bytes).toBeGreaterThan(200_000);
    await serving.ask("POST", "/sessions/long/redact", { body: { ids: ["big"], reason: "asked" } });
    await serving.ask("DELETE", "/sessions/gone?purge=true");
    days = 0.01;
    await expect.poll(bytes).toBeLessThan(5000);
  });
});

describe("the audit log", () => {
  it("is kept for the days that are set, a month at a time, under seqs that only grow", async () => {
    let days = 0;
    const serving = await served({ clock: later(() => days), auditDays: 100 });
    const events = async (after = 0): Promise<readonly { readonly seq: number; readonly action: string }[]> =>
      (await serving.ask("GET", `/admin/audit?limit=500&after=${after}`)).body["items"] as never;
    const make = (label: string): Promise<unknown> =>
      serving.ask("POST", "/admin/tokens", { body: { namespace: "", scopes: ["read"], label } });
    for (const at of [0, 40, 80]) {
      days = at;
      await make(`day ${at}`);
    }
    const before = await events();
    expect(before.map(({ action }) => action)).toEqual(["token.create", "token.create", "token.create"]);
    const seqs = before.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
    expect(await events(seqs[1])).toEqual(before.slice(2));
    days = 135;
    await make("day 135");
    const after = await events();
    expect(after.map(({ seq }) => seq).slice(0, 2)).toEqual(seqs.slice(1));
    expect(after.map(({ action }) => action)).toEqual(["token.create", "token.create", "token.create", "audit.remove"]);
    expect(after[3]).toMatchObject({ by: "server", details: { key: expect.stringMatching(/^audit-\d{4}-\d{2}$/) } });
  });
});
