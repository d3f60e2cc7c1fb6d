import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSessions, type Sessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { until } from "@throughline/test-kit";
import { createScriptedModel, type ScriptedModel } from "../../../packages/session/test/scripted-model.ts";
import { key } from "../../../packages/session/test/session-fixture.ts";
import { serve, type Serving } from "./serving.ts";

let folder = "";
let serving: Serving;
const path = (): string => join(folder, "sessions.db");
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "attach-"));
  serving = await serve({ openStore: (onEvent) => createSqliteStore({ path: path(), onEvent }) });
});
afterEach(async () => {
  await serving.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A program that answers beside the server, over the same database. */
function program(script: ScriptedModel): Sessions {
  const model = { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 100_000 };
  return createSessions({ store: createSqliteStore({ path: path() }), model });
}

const events = (): Promise<Response> =>
  fetch(`${serving.url}/api/v1/sessions/${key}/turn/events`, { headers: { authorization: `Bearer ${serving.token}` } });

/** Leaves out the pings, which come after a time without an event. */
function framesOf(text: string): readonly (readonly [string, Readonly<Record<string, unknown>>])[] {
  return text.split("\n\n").flatMap((frame) => {
    const [, name = "", data = ""] = /^event: (\S+)\n(?:id: .*\n)?data: (.*)$/.exec(frame) ?? [];
    return name === "" || name === "ping"
      ? []
      : [[name, JSON.parse(data) as Readonly<Record<string, unknown>>] as const];
  });
}

/** Gives the text of a reply as a page puts it together. */
function textOf(shown: string): string {
  let text = "";
  // The last event may not be whole yet.
  for (const [name, data] of framesOf(shown.slice(0, shown.lastIndexOf("\n\n") + 1)))
    if (name === "text.snapshot") text = String(data["text"]);
    else if (name === "text.delta") text += String(data["text"]);
  return text;
}

describe("a reply that a program writes", { tags: ["slow"] }, () => {
  it("is followed by a page: the text so far, the rest and the end", async () => {
    expect((await events()).status).toBe(404);
    const gate = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "Hello there", pieceLength: 6, between: gate.promise });
    await using sessions = program(script);
    const session = await sessions.open(key);
    expect((await events()).status).toBe(204);
    const running = session.runTurn("Hi", { onDelta: () => {} });
    // The partial is in the store of the server once 700 ms have passed.
    await using store = createSqliteStore({ path: path() });
    await until(async () => (await store.partials?.read({ namespace: "", agentId: "main", key })) !== null);
    const page = (await events()).body?.pipeThrough(new TextDecoderStream()) ?? expect.fail();
    let shown = "";
    for await (const text of page) {
      shown += text;
      // The rest is written once the page has the text so far. When the server reads it decides into which events it comes.
      if (textOf(shown) === "Hello ") gate.resolve();
    }
    const { turnId } = await running;
    const frames = framesOf(shown);
    expect(textOf(shown)).toBe("Hello there");
    expect(frames.at(0)?.[0]).toBe("text.snapshot");
    expect(frames.at(-1)).toEqual(["turn.closed", { turnId, outcome: "done" }]);
    expect(new Set(frames.map(([, data]) => data["turnId"]))).toEqual(new Set([turnId]));
    expect((await events()).status).toBe(204);
  });

  it("ends for the page when the server stops", async () => {
    const script = createScriptedModel({ text: "Hello", hangs: true });
    await using sessions = program(script);
    const session = await sessions.open(key);
    const cancel = new AbortController();
    const running = session.runTurn("Hi", { onDelta: () => {}, signal: cancel.signal });
    await until(() => script.requests.length === 1);
    const page = await events();
    expect(page.status).toBe(200);
    const closing = serving.server.close();
    expect(await page.text()).toMatch(/event: text\.snapshot\n[^]*event: bye\n/);
    cancel.abort();
    await running.catch(() => {});
    await closing;
  });
});
