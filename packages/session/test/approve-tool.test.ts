import { afterEach, describe, expect, it } from "vitest";
import { defineTool } from "@throughline/core";
import type { SessionsOptions } from "@throughline/session";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, type Fixture } from "./session-fixture.ts";

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
});
