import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { defineTool, ThroughlineError } from "@throughline/core";
import type { SessionsOptions } from "@throughline/session";
import { replaceMembers } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { allRecords, createFixture, echoTool, key, type Fixture } from "./session-fixture.ts";

const open: Fixture[] = [];

afterEach(async () => {
  for (const { sessions } of open.splice(0)) await sessions.close();
});

/** A turn in which the model calls `erase` once; what ran, and what the model read of it. */
async function turnWith(
  approveTool: SessionsOptions["approveTool"],
  signal?: AbortSignal,
): Promise<{ readonly erased: readonly string[]; readonly result: unknown; readonly events: readonly string[] }> {
  const erased: string[] = [];
  const erase = defineTool({
    name: "erase",
    description: "Erases a file.",
    input: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    run: ({ path }) => {
      erased.push(path);
      return "erased";
    },
  });
  const script = createScriptedModel(
    { calls: [{ id: "call-1", name: "erase", arguments: { path: "a.txt" } }] },
    "Done.",
  );
  const fixture = createFixture({ script, tools: [erase], ...(approveTool === undefined ? {} : { approveTool }) });
  open.push(fixture);
  const session = await fixture.sessions.open(key);
  const turn = await session.runTurn("Erase a.txt", signal === undefined ? {} : { signal });
  const result = turn.messages.find(({ role }) => role === "toolResult");
  return { erased, result, events: fixture.events.map(({ name }) => name) };
}

describe("approveTool", () => {
  it("lets a call run that it approves, and sees its name, arguments and place", async () => {
    const asked: unknown[] = [];
    const { erased, result, events } = await turnWith((call, { callId, ref, turnId }) => {
      asked.push({ ...call, callId, key: ref?.key, hasTurn: typeof turnId === "string" });
      return true;
    });
    expect(asked).toEqual([
      { id: "call-1", name: "erase", arguments: { path: "a.txt" }, callId: "call-1", key, hasTurn: true },
    ]);
    expect(erased).toEqual(["a.txt"]);
    expect(result).toMatchObject({ isError: false });
    expect(events).toContain("tool.started");
    expect(events).not.toContain("tool.refused");
  });

  it("takes undefined for a fact that the program does not know", async () => {
    const unknown = { by: undefined, words: undefined, path: undefined, decision: undefined, askedMs: undefined };
    expect((await turnWith(() => ({ approve: unknown }))).erased).toEqual(["a.txt"]);
    expect((await turnWith(() => ({ refuse: "No.", ...unknown }))).erased).toEqual([]);
  });

  it("keeps a call from running, and the model reads why", async () => {
    const { erased, result, events } = await turnWith(async () => ({ refuse: "The user wants to keep a.txt." }));
    expect(erased).toEqual([]);
    expect(result).toMatchObject({ isError: true, content: [{ type: "text", text: "The user wants to keep a.txt." }] });
    expect(events).toContain("tool.refused");
    expect(events).not.toContain("tool.started");
  });

  it.each([
    ["false", () => false],
    ["nothing", () => {}],
    ["a text", () => "yes"],
    ["an error", () => Promise.reject(new Error("no terminal"))],
  ])("that gives %s keeps the call from running", async (_case, approve) => {
    const { erased, result } = await turnWith(approve as never);
    expect(erased).toEqual([]);
    expect(result).toMatchObject({ isError: true });
  });

  it("cannot change what is run or stored", async () => {
    const { erased } = await turnWith((call) => {
      (call.arguments as Record<string, unknown>)["path"] = "b.txt";
      return true;
    });
    expect(erased).toEqual(["a.txt"]);
  });

  it("that never answers ends with the turn's signal", async () => {
    const controller = new AbortController();
    const { erased, result } = await turnWith(() => {
      setTimeout(() => controller.abort(), 10);
      return new Promise(() => {});
    }, controller.signal);
    expect(erased).toEqual([]);
    expect(result).toMatchObject({ isError: true });
  });

  const approvals = async (
    approveTool: SessionsOptions["approveTool"],
    given: Partial<SessionsOptions> = {},
  ): Promise<readonly unknown[]> => {
    const script = createScriptedModel({ calls: [{ id: "call-1", name: "echo", arguments: { text: "a" } }] }, "Done.");
    const fixture = createFixture({ script, ...given, ...(approveTool === undefined ? {} : { approveTool }) });
    open.push(fixture);
    await (await fixture.sessions.open(key)).runTurn("Say a");
    return (await fixture.records())
      .filter(({ record }) => record["customType"] === "throughline.approval")
      .map(({ record }) => record["data"]);
  };

  it.each([
    ["true", () => true, { decision: "once" }],
    ["an approval", () => ({ approve: {} }), { decision: "once" }],
    [
      "a person's, for the session",
      () => ({ approve: { decision: "session", by: "person", path: "a.txt", beforeSha256: "1f", askedMs: 5 } }),
      { decision: "session", by: "person", path: "a.txt", beforeSha256: "1f", askedMs: 5 },
    ],
    [
      "a refusal with words",
      () => ({ refuse: "No.", by: "person", words: "keep it" }),
      { decision: "no", by: "person", words: "keep it" },
    ],
    ["a canceled question", () => ({ refuse: "No.", decision: "cancel" }), { decision: "cancel" }],
    ["no decision", () => null, { decision: "no" }],
    [
      "an approval that states what it cannot be",
      () => ({ approve: { decision: "no", by: "root", path: 7, words: "x\ud800", askedMs: Number.NaN } }),
      { decision: "once", words: "x\ufffd" },
    ],
  ])("keeps %s in the log", async (_case, approve, expected) => {
    const [data, ...others] = await approvals(approve as never);
    expect(others).toEqual([]);
    expect(data).toEqual({
      turnId: expect.any(String),
      callId: "call-1",
      tool: "echo",
      askedMs: expect.any(Number),
      decidedMs: expect.any(Number),
      ...expected,
    });
  });

  it("that is not set, or fails, leaves no record", async () => {
    expect(await approvals(undefined)).toEqual([]);
    expect(await approvals(() => Promise.reject(new Error("no terminal")))).toEqual([]);
  });

  it("cuts what a record could not hold", async () => {
    const [data] = await approvals(() => ({ approve: { path: "x".repeat(20_000_000) } }));
    expect((data as { readonly path: string }).path).toHaveLength(4096);
  });

  it("goes through the hook that redacts what is stored", async () => {
    const redactBeforeAppend: SessionsOptions["redactBeforeAppend"] = (draft) =>
      JSON.parse(JSON.stringify(draft).replaceAll("secret", "[left out]")) as typeof draft;
    const given = { redactBeforeAppend };
    expect(await approvals(() => ({ approve: { path: "secret.txt" } }), given)).toEqual([
      expect.objectContaining({ path: "[left out].txt" }),
    ]);
  });

  it("is on the disk before the tool runs, for each of parallel calls", async () => {
    const folder = mkdtempSync(join(tmpdir(), "approval-"));
    const path = join(folder, "store.db");
    const store = createSqliteStore({ path });
    const seen: number[] = [];
    const look = defineTool({
      name: "look",
      description: "Counts approvals.",
      input: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      run: async ({ id }) => {
        await using other = createSqliteStore({ path, create: false });
        const records = await allRecords(other);
        seen.push(
          records.filter(({ record }) => (record["data"] as { callId?: string } | undefined)?.callId === id).length,
        );
        return "seen";
      },
    });
    const calls = ["c1", "c2", "c3"].map((id) => ({ id, name: "look", arguments: { id } }));
    const script = createScriptedModel({ calls }, "Done.");
    const fixture = createFixture({ store, script, tools: [look], approveTool: () => true });
    await (await fixture.sessions.open(key)).runTurn("Look");
    expect(seen).toEqual([1, 1, 1]);
    await fixture.sessions.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  it("runs no tool whose approval could not be kept", async () => {
    const memory = createMemoryStore();
    const isApproval = (drafts: readonly unknown[]): boolean => JSON.stringify(drafts).includes("throughline.approval");
    const store = replaceMembers(memory, {
      append: (...given) =>
        isApproval(given[1])
          ? Promise.reject(new ThroughlineError("STORE_IO", "The disk is full.", { outcome: "not-applied" }))
          : memory.append(...given),
    });
    let runs = 0;
    const script = createScriptedModel({ calls: [{ id: "call-1", name: "echo", arguments: { text: "a" } }] }, "Done.");
    const echo = { ...echoTool, run: () => `${(runs += 1)}` };
    const fixture = createFixture({ store, script, tools: [echo], approveTool: () => true });
    open.push(fixture);
    const session = await fixture.sessions.open(key);
    await expect(session.runTurn("Say a")).rejects.toMatchObject({ code: "STORE_IO" });
    expect(runs).toBe(0);
  });
});
