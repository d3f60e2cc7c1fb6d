import { sessionRef } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { until } from "@throughline/test-kit";
import { type AttachedTurn, createSessions, type Session } from "@throughline/session";
import { describe, expect, it } from "vitest";
import { LiveTurn } from "../src/live-turn.ts";
import type { TurnStreamEvent } from "../src/turn-stream-event.ts";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { createFixture, key } from "./session-fixture.ts";

/** What a page shows: a snapshot replaces what was there. */
function textOf(events: readonly TurnStreamEvent[]): string {
  return events.reduce((text, event) => {
    if (event.name === "text.snapshot") return event.text;
    return event.name === "text.delta" ? text + event.text : text;
  }, "");
}

async function attach(session: Session): Promise<AttachedTurn> {
  const attached = await session.attach();
  if (attached === null) throw new Error("no turn runs");
  return attached;
}

/** A reply whose second half comes when the test says so. */
function halves(first: string, second: string): { readonly reply: ScriptedReply; readonly go: () => void } {
  const gate = Promise.withResolvers<void>();
  return { reply: { text: first + second, pieceLength: first.length, between: gate.promise }, go: gate.resolve };
}

describe("attach, in the process of the turn", () => {
  it("gives the text so far, the pieces and the result to each reader", async () => {
    const { reply, go } = halves("Hello ", "there");
    const { sessions } = createFixture({ script: createScriptedModel(reply) });
    const session = await sessions.open(key);
    let shown = "";
    const running = session.runTurn("Hi", { onDelta: (delta) => (shown += delta.type === "text" ? delta.text : "") });
    await until(() => shown === "Hello ");
    const first = await attach(session);
    const other = await sessions.attach(key);
    const readers = [first, other ?? first].map((each) => Array.fromAsync(each));
    go();
    const turn = await running;
    for (const events of await Promise.all(readers)) {
      expect(events[0]).toEqual({ name: "text.snapshot", text: "Hello " });
      expect(textOf(events)).toBe("Hello there");
      expect(events.at(-1)).toEqual({ name: "turn.result", turn });
      expect(events.map(({ name }) => name)).toContain("record.appended");
    }
    expect(first.turnId).toBe(turn.turnId);
    expect(other?.turnId).toBe(turn.turnId);
    expect(() => first[Symbol.asyncIterator]()).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });

  it("is null when no turn runs, and creates nothing", async () => {
    const { sessions, store } = createFixture({ script: createScriptedModel("one") });
    expect(await sessions.attach("nobody")).toBeNull();
    expect((await store.list()).sessions).toEqual([]);
    const session = await sessions.open(key);
    expect(await session.attach()).toBeNull();
    await session.runTurn("Hi", { onDelta: () => {} });
    expect(await session.attach()).toBeNull();
  });

  it("leaves the turn alone: by `break`, by a signal, by `await using`, and by closing its own sessions", async () => {
    const { reply, go } = halves("Hello ", "there");
    const { sessions, store } = createFixture({ script: createScriptedModel(reply) });
    const session = await sessions.open(key);
    const running = session.runTurn("Hi", { onDelta: () => {} });
    await until(() => session.head.turn !== null);
    for await (const event of await attach(session)) {
      expect(event.name).toBe("text.snapshot");
      break;
    }
    const leaving = new AbortController();
    const ended = Array.fromAsync((await session.attach({ signal: leaving.signal })) ?? []);
    leaving.abort();
    await ended;
    {
      await using scoped = await attach(session);
      expect(scoped.turnId).not.toBe("");
    }
    const chat = createScriptedModel();
    const others = createSessions({ store, model: { chat, modelId: "claude-sonnet-4-5" } });
    const theirs = Array.fromAsync((await others.attach(key)) ?? []);
    await others.close();
    await theirs;
    go();
    expect((await running).outcome).toBe("done");
  });

  it("shows no text of a reply that is stored, and none twice", async () => {
    const go = Promise.withResolvers<void>();
    const wait = { id: "c1", name: "wait", arguments: {} };
    const { sessions } = createFixture({
      script: createScriptedModel({ text: "Let me see. ", calls: [wait] }, { text: "It says hi.", pieceLength: 3 }),
      tools: [
        {
          definition: { name: "wait", description: "Waits.", inputSchema: { type: "object" } },
          run: () => go.promise.then(() => "hi"),
        },
      ],
    });
    const session = await sessions.open(key);
    let hasCalled = false;
    const running = session.runTurn("Hi", {
      onDelta: () => {},
      onEvent: ({ name }) => (hasCalled ||= name === "tool.started"),
    });
    await until(() => hasCalled);
    const reading = Array.fromAsync(await attach(session));
    go.resolve();
    await running;
    const events = await reading;
    expect(events[0]).toEqual({ name: "text.snapshot", text: "" });
    expect(textOf(events)).toBe("It says hi.");
  });

  it("replaces the text when the model is asked again", () => {
    const live = new LiveTurn();
    const events: TurnStreamEvent[] = [];
    const push = (event: TurnStreamEvent): void => void events.push(event);
    live.attach({ signal: new AbortController().signal, push, finish: push, fail: () => {} });
    const show = live.shows(() => {});
    const started = (step: number, attempt: number): void =>
      live.takeEvent({
        name: "call.started",
        step,
        attempt,
        estimatedTokens: 1,
        turnId: "t1",
        ref: sessionRef({ key }),
      });
    started(1, 0);
    show({ type: "text", text: "First try" });
    started(1, 1);
    show({ type: "text", text: "Second try" });
    expect(textOf(events)).toBe("Second try");
  });

  it("throws what the turn throws", async () => {
    const { reply, go } = halves("Hello ", "there");
    const { sessions } = createFixture({ script: createScriptedModel({ ...reply, error: new Error("no server") }) });
    const session = await sessions.open(key);
    const running = session.runTurn("Hi", { onDelta: () => {} });
    await until(() => session.head.turn !== null);
    const reading = Array.fromAsync(await attach(session));
    go();
    await expect(running).rejects.toMatchObject({ code: "MODEL_FAILED" });
    await expect(reading).rejects.toMatchObject({ code: "MODEL_FAILED" });
  });

  it("answers a request with server-sent events", async () => {
    const { reply, go } = halves("Hello ", "there");
    const { sessions } = createFixture({ script: createScriptedModel(reply), store: createMemoryStore() });
    const session = await sessions.open(key);
    const running = session.runTurn("Hi", { onDelta: () => {} });
    await until(() => session.head.turn !== null);
    const response = (await attach(session)).toResponse();
    const text = response.text();
    go();
    await running;
    expect(await text).toMatch(
      /event: text\.snapshot\ndata: {"name":"text\.snapshot","text":"[^]*event: turn\.result\n/,
    );
  });
});
