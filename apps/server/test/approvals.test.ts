import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "@throughline/core/internal";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createScriptedModel } from "../../../packages/session/test/scripted-model.ts";
import { key } from "../../../packages/session/test/session-fixture.ts";
import { killAtQuestion } from "../../../packages/session/test/kill-at-question.ts";
import { type Answered, serve, type Serving } from "./serving.ts";

vi.setConfig({ testTimeout: 120_000 });

let killed = "";
let folder = "";
let serving: Serving;
/** A program on this machine was killed at the question about two calls. */
beforeAll(async () => {
  killed = await mkdtemp(join(tmpdir(), "approvals-killed-"));
  await killAtQuestion("sqlite", killed, 0);
});
afterAll(() => rm(killed, { recursive: true, force: true }));
/** The server has a copy of its database. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "approvals-"));
  await cp(killed, folder, { recursive: true });
  const path = join(folder, "sessions.db");
  serving = await serve({ openStore: (onEvent) => createSqliteStore({ path, onEvent }) });
});
afterEach(async () => {
  await serving.close();
  await rm(folder, { recursive: true, force: true });
});

const decide = (body: object): Promise<Answered> => serving.ask("POST", `/sessions/${key}/approvals`, { body });
const waiting = async (): Promise<readonly unknown[]> =>
  ((await serving.ask("GET", `/sessions/${key}/approvals`)).body as { readonly items: readonly unknown[] }).items;

describe("approvals over HTTP", () => {
  it("are listed, decided once, and carried out by the program that resumes, which runs each call once", async () => {
    expect(await waiting()).toMatchObject([
      { kind: "approval", callId: "call-A", tool: "refund", arguments: { order: "A" } },
      { callId: "call-B" },
    ]);
    const approve = { callId: "call-A", decision: "approve", by: "person" };
    expect(await decide(approve)).toMatchObject({ status: 201, body: { isAllowed: true, replayed: false } });
    expect(await decide(approve)).toMatchObject({ status: 200, body: { isAllowed: true, replayed: true } });
    const other = { callId: "call-A", decision: "refuse", text: "No." };
    expect(await decide(other)).toMatchObject({ status: 409, body: { code: "APPROVAL_DECIDED" } });
    expect(await waiting()).toMatchObject([{ callId: "call-B" }]);
    expect((await decide({ callId: "call-B", decision: "refuse", text: "Too much." })).status).toBe(201);

    const paid: unknown[] = [];
    await using store = createSqliteStore({ path: join(folder, "sessions.db") });
    const definition = { name: "refund", description: "Pays back.", inputSchema: { type: "object" } };
    await using sessions = createSessions({
      store,
      model: { chat: createScriptedModel("Done."), modelId: "claude-sonnet-4-5", windowTokens: 100_000 },
      tools: [{ definition, run: ({ order }) => `paid ${paid.push(order)}` }],
    });
    const turn = await (await sessions.open(key)).resume();
    expect([turn.outcome, paid]).toEqual(["done", ["A"]]);
    expect(JSON.stringify(turn.messages)).toContain("Too much.");
    expect(await decide(approve)).toMatchObject({ status: 200, body: { replayed: true } });
    expect(await waiting()).toEqual([]);
  });

  it("are refused where the body contradicts itself, and for a call that does not wait", async () => {
    for (const body of [
      { callId: "call-A", decision: "refuse" },
      { callId: "call-A", decision: "approve", text: "Yes." },
    ])
      expect(await decide(body)).toMatchObject({ status: 400, body: { code: "INPUT_INVALID" } });
    expect(await decide({ callId: "none", decision: "approve" })).toMatchObject({ status: 409 });
  });

  it("are taken back by the program, and expire: late decisions are refused, and lists and events count", async () => {
    const withdraw = { callId: "call-A", decision: "withdraw", text: "The order is closed." };
    expect(await decide(withdraw)).toMatchObject({ status: 201, body: { isAllowed: false, words: withdraw.text } });
    expect(await decide({ callId: "call-A", decision: "approve" })).toMatchObject({ status: 409 });
    const clock = { ...systemClock, nowMs: () => 1000 };
    await using store = createSqliteStore({ path: join(folder, "sessions.db") });
    await using sessions = createSessions({
      store,
      model: {
        chat: createScriptedModel({ calls: [{ id: "call-C", name: "refund", arguments: {} }] }),
        modelId: "claude-sonnet-4-5",
        windowTokens: 100_000,
      },
      tools: [{ definition: { name: "refund", description: "Pays.", inputSchema: { type: "object" } }, run: () => "" }],
      approveTool: () => ({ wait: {}, expiresAtMs: 2000 }),
      clock,
    });
    const turn = await (await sessions.open("expired")).runTurn("Pay");
    expect(turn.outcome).toBe("waiting");
    const place = `/sessions/${encodeURIComponent(turn.ref.key)}`;
    expect((await serving.ask("GET", `${place}/approvals`)).body).toMatchObject({ items: [] });
    expect((await serving.ask("GET", place)).body).toMatchObject({ pendingApprovals: 0 });
    const body = { callId: "call-C", decision: "approve" };
    expect(await serving.ask("POST", `${place}/approvals`, { body })).toMatchObject({
      status: 409,
      body: { code: "APPROVAL_DECIDED" },
    });
  });

  it("need the right to write", async () => {
    const token = await serving.tokenOf({ scopes: ["read"] });
    const body = { callId: "call-A", decision: "approve" };
    expect((await serving.ask("POST", `/sessions/${key}/approvals`, { body, token })).status).toBe(403);
    expect((await serving.ask("GET", `/sessions/${key}/approvals`, { token })).status).toBe(200);
  });
});
