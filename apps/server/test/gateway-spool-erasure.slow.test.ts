import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionRef, SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

const secret = "correct-horse-battery-staple";
const ref: SessionRef = { namespace: "", agentId: "main", key: "" };

let folder = "";
let gateway: GatewayServing | null = null;
let other: SessionStore;
beforeEach(async () => {
  folder = mkdtempSync(join(quickFolder(), "throughline-spool-erasure-"));
  other = createSqliteStore({ path: join(folder, "sessions.db") });
});
afterEach(async () => {
  await gateway?.close();
  gateway = null;
  await other.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<GatewayServing> {
  const openStore = (): SessionStore => createSqliteStore({ path: join(folder, "sessions.db") });
  gateway = await serveGateway({ fallback: () => "Noted." }, { openStore }, { spoolFolder: join(folder, "spool") });
  return gateway;
}

const question = { role: "user", content: `The password is ${secret}.` };
const more = [question, { role: "assistant", content: "Noted." }, { role: "user", content: "And now?" }];

async function ask(at: GatewayServing, messages: readonly object[]): Promise<void> {
  const answer = await fetch(`${at.url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": at.token, "anthropic-version": "2023-06-01", "throughline-session": "home" },
    body: JSON.stringify({ model: "claude-opus-5", max_tokens: 100, messages }),
  });
  expect([answer.status, (await answer.text()).includes("Noted.")]).toEqual([200, true]);
}

const files = (): readonly string[] => (existsSync(join(folder, "spool")) ? readdirSync(join(folder, "spool")) : []);
const holding = (): readonly string[] =>
  [...readdirSync(folder).map((name) => join(folder, name)), ...files().map((name) => join(folder, "spool", name))]
    .filter((path) => !path.endsWith("spool"))
    .filter((path) => readFileSync(path).includes(secret));

/** A call with the secret is stored, and one that repeats it waits in the spool while a turn is open. */
async function wait(at: GatewayServing): Promise<{ readonly key: string; readonly release: () => Promise<void> }> {
  await ask(at, [question]);
  const key = (await at.calls(1))[0]?.session ?? "";
  const { body } = await at.serving.ask("POST", `/sessions/${key}/turns`, { body: { owner: "x", leaseMs: 600_000 } });
  await ask(at, more);
  await expect.poll(files).toHaveLength(1);
  const release = async (): Promise<void> => {
    await at.serving.ask("POST", `/sessions/${key}/turns/${String(body["fence"])}/close`, { body: {} });
  };
  return { key, release };
}

async function idOfQuestion(key: string): Promise<string> {
  for await (const { records } of other.read({ ...ref, key }))
    for (const { id, record } of records) if (JSON.stringify(record).includes(secret)) return id;
  throw new Error("no question");
}

describe("a call that waits in the spool", () => {
  it("is stored without what was redacted meanwhile, and its file goes", async () => {
    const at = await start();
    const { key, release } = await wait(at);
    const body = { ids: [await idOfQuestion(key)], reason: "a secret" };
    const redacted = await at.serving.ask("POST", `/sessions/${key}/redact`, { body });
    expect([redacted.status, redacted.body["spooledCalls"]]).toEqual([200, 1]);
    await release();
    await expect.poll(files).toEqual([]);
    const calls = await at.calls(2);
    expect(new Set(calls.map(({ session }) => session))).toEqual(new Set([key]));
    expect(holding()).toEqual([]);
    expect((await at.serving.ask("POST", `/sessions/${key}/redact`, { body })).body["spooledCalls"]).toBe(0);
  });

  it("goes with its session where that is purged", async () => {
    const at = await start();
    const { key } = await wait(at);
    const purged = await at.serving.ask("DELETE", `/sessions/${key}?purge=true&force=true`);
    expect([purged.status, purged.body["kind"], purged.body["spooledCalls"]]).toEqual([200, "removed", 0]);
    expect(files()).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect((await at.serving.ask("GET", "/sessions")).body["count"]).toBe(0);
    expect(holding()).toEqual([]);
  });

  it("does not bring back a session that another process purged while no server ran", async () => {
    const first = await start();
    const { key } = await wait(first);
    await first.close();
    gateway = null;
    expect(files()).toHaveLength(1);
    await other.remove({ ...ref, key }, { purge: true });
    const at = await start();
    await expect.poll(files).toEqual([]);
    expect((await at.serving.ask("GET", "/sessions")).body["count"]).toBe(0);
    expect(holding()).toEqual([]);
    const metrics = await fetch(`${at.serving.url}/metrics`, {
      headers: { authorization: `Bearer ${at.serving.token}` },
    });
    expect(await metrics.text()).toContain('throughline_gateway_unrecorded_total{reason="removed"} 1');
  });

  it("that was put aside goes with what is redacted in its session, and one that cannot be read is counted", async () => {
    const first = await start();
    const { key, release } = await wait(first);
    await first.close();
    gateway = null;
    const [name = ""] = files();
    const spool = join(folder, "spool");
    renameSync(join(spool, name), join(spool, `${name}.failed`));
    const at = await start();
    await release().catch(() => {});
    const body = { ids: [await idOfQuestion(key)], reason: "a secret" };
    expect((await at.serving.ask("POST", `/sessions/${key}/redact`, { body })).body["spooledCalls"]).toBe(0);
    expect(files()).toEqual([]);
    expect(holding()).toEqual([]);
  });
});

it("a call that is answered while its session is purged does not bring it back", async () => {
  const at = await start();
  await ask(at, [question]);
  const key = (await at.calls(1))[0]?.session ?? "";
  at.simulator.enqueue({ kind: "answer", content: "Noted.", delayMs: 500 });
  const answering = ask(at, more);
  await expect.poll(() => at.simulator.requests.length).toBe(2);
  await at.serving.ask("DELETE", `/sessions/${key}?purge=true&force=true`);
  await answering;
  await expect.poll(files).toEqual([]);
  expect((await at.serving.ask("GET", "/sessions")).body["count"]).toBe(0);
  expect(holding()).toEqual([]);
});
