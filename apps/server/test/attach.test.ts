import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSessions, type Sessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { until } from "@throughline/test-kit";
import { openHttpStore } from "../../../packages/store-http/src/index.ts";
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

/** A program that answers over the server, as one on another machine does. */
async function program(script: ScriptedModel): Promise<Sessions> {
  const store = await openHttpStore({ url: serving.url, token: serving.token });
  return createSessions({ store, model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 100_000 } });
}

const events = (): Promise<Response> =>
  fetch(`${serving.url}/api/v1/sessions/${key}/turn/events`, { headers: { authorization: `Bearer ${serving.token}` } });

function framesOf(text: string): readonly (readonly [string, Readonly<Record<string, unknown>>])[] {
  return text.split("\n\n").flatMap((frame) => {
    const [, name = "", data = ""] = /^event: (\S+)\n(?:id: .*\n)?data: (.*)$/.exec(frame) ?? [];
    return name === "" ? [] : [[name, JSON.parse(data) as Readonly<Record<string, unknown>>] as const];
  });
}

describe("a reply that a program writes over the server", { tags: ["slow"] }, () => {
  it("is followed by a page and by another program: the text so far, the rest and the end", async () => {
    expect((await events()).status).toBe(404);
    const gate = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "Hello there", pieceLength: 6, between: gate.promise });
    await using sessions = await program(script);
    const session = await sessions.open(key);
    expect((await events()).status).toBe(204);
    const running = session.runTurn("Hi", { onDelta: () => {} });
    // The partial is in the store of the server once 700 ms have passed.
    await using store = createSqliteStore({ path: path() });
    await until(async () => (await store.partials?.read({ namespace: "", agentId: "main", key })) !== null);
    const page = events().then((response) => response.text());
    await using others = await program(createScriptedModel());
    const attached = (await others.attach(key)) ?? expect.unreachable("no turn runs");
    const reading = Array.fromAsync(attached);
    await new Promise((resolve) => setTimeout(resolve, 600));
    gate.resolve();
    const turn = await running;
    const { turnId } = turn;
    expect(framesOf(await page)).toEqual([
      ["text.snapshot", { turnId, text: "Hello " }],
      ["text.delta", { turnId, text: "there" }],
      ["turn.closed", { turnId, outcome: "done" }],
    ]);
    const read = await reading;
    expect(read[0]).toEqual({ name: "text.snapshot", text: "Hello " });
    expect(read.at(-1)).toMatchObject({ name: "turn.result", turn: { turnId, outcome: "done", text: "Hello there" } });
    expect((await events()).status).toBe(204);
  });

  it("ends for the page when the server stops", async () => {
    const script = createScriptedModel({ text: "Hello", hangs: true });
    await using sessions = await program(script);
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
