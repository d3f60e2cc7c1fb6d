import type { Session, TurnStream } from "@throughline/session";
import type { TurnStreamEvent } from "../src/turn-stream-event.ts";
import { describe, expect, it } from "vitest";
import { ThroughlineError } from "@throughline/core";
import { errorCodes } from "@throughline/core/internal";
import { until } from "@throughline/test-kit";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { createFixture, key, outline } from "./session-fixture.ts";

const call = { id: "c1", name: "echo", arguments: { text: "hi" } };

async function allOf(stream: TurnStream): Promise<readonly TurnStreamEvent[]> {
  const events: TurnStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

interface OpenSession extends ReturnType<typeof createFixture> {
  readonly session: Session;
}

async function open(script: ScriptedModel, options: Parameters<typeof createFixture>[0] = {}): Promise<OpenSession> {
  const fixture = createFixture({ script, ...options });
  return { ...fixture, session: await fixture.sessions.open(key) };
}

/** Server-sent events as a client reads them, by the rules of the standard. */
async function framesOf(response: Response): Promise<readonly Readonly<Record<string, string>>[]> {
  const frames: Record<string, string>[] = [];
  let frame: Record<string, string> = {};
  for (const line of (await response.text()).split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (frame["data"] !== undefined) frames.push(frame);
      frame = {};
      continue;
    }
    const at = line.indexOf(":");
    if (at === 0) continue;
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    frame[name] = name === "data" && frame["data"] !== undefined ? `${frame["data"]}\n${value}` : value;
  }
  return frames;
}

describe("streamTurn", () => {
  it("gives the pieces, records, calls and tools of a turn in order, and its result last", async () => {
    const script = createScriptedModel({ text: "Let me see.", calls: [call] }, { text: "It says hi.", pieceLength: 3 });
    const { session, records } = await open(script);
    const stream = session.streamTurn("What does it say?");
    const events = await allOf(stream);
    const names = events.map(({ name }) => name).filter((name) => !name.startsWith("guard."));
    expect(names.slice(0, 5)).toEqual([
      "record.appended",
      "record.appended",
      "turn.opened",
      "call.started",
      "text.delta",
    ]);
    for (const name of ["tool.started", "tool.finished", "call.finished", "turn.closed"]) expect(names).toContain(name);
    expect(names.at(-1)).toBe("turn.result");
    const text = events.map((event) => (event.name === "text.delta" ? event.text : "")).join("");
    expect(text).toBe("Let me see.It says hi.");
    const appended = events.flatMap((event) => (event.name === "record.appended" ? [event.record.seq] : []));
    expect(appended).toEqual((await records()).map(({ seq }) => seq));
    expect((await stream.result).text).toBe("It says hi.");
    expect(events.at(-1)).toEqual({ name: "turn.result", turn: await stream.result });
  });

  it("calls the callbacks beside", async () => {
    const { session } = await open(createScriptedModel("one two"));
    const seen: string[] = [];
    const stream = session.streamTurn("Hello", {
      onDelta: (delta) => seen.push(delta.type),
      onEvent: ({ name }) => seen.push(name),
    });
    await allOf(stream);
    expect(seen).toContain("text");
    expect(seen).toContain("turn.closed");
  });

  it("runs to its end when nobody reads, and keeps bounded memory", async () => {
    const script = createScriptedModel({ text: "x".repeat(3_000_000), pieceLength: 1000 }, "next");
    const { session, records } = await open(script);
    const stream = session.streamTurn("Write a lot");
    const turn = await stream.result;
    expect(turn.text).toHaveLength(3_000_000);
    expect(outline(await records())).toEqual(["turn:open", "user", "assistant:stop", "call:answered", "turn:done"]);
    const events = await allOf(stream);
    const kept = events.reduce((sum, event) => sum + (event.name === "text.delta" ? event.text.length : 0), 0);
    const gap = events.find((event) => event.name === "stream.gap");
    expect(kept).toBeLessThanOrEqual(1_048_576);
    expect(kept + (gap?.characters ?? 0)).toBe(3_000_000);
    expect(events.length).toBeLessThan(1002);
    expect(events.at(-1)?.name).toBe("turn.result");
    expect((await session.runTurn("And now?")).text).toBe("next");
  });

  it("aborts the turn when the loop is left at once, and stores that", async () => {
    const { session, records } = await open(createScriptedModel());
    const stream = session.streamTurn("Hello");
    for await (const event of stream) {
      expect(event.name).toBe("record.appended");
      break;
    }
    // Leaving waits until the end is stored: the next turn need not wait for it.
    expect((await stream.result).outcome).toBe("aborted");
    expect(outline(await records()).at(-1)).toBe("turn:aborted");
    expect((await session.runTurn("Again", { whenBusy: "reject" })).outcome).toBe("done");
  });

  it("aborts the turn by a signal, and by `await using`", async () => {
    const script = createScriptedModel({ text: "one", hangs: true }, { text: "two", hangs: true });
    const { session } = await open(script);
    const controller = new AbortController();
    const stream = session.streamTurn("1", { signal: controller.signal });
    await until(() => script.requests.length === 1);
    controller.abort();
    expect((await allOf(stream)).at(-1)).toMatchObject({ name: "turn.result", turn: { outcome: "aborted" } });
    let second: TurnStream;
    {
      await using scoped = session.streamTurn("2");
      second = scoped;
      await until(() => script.requests.length === 2);
    }
    expect((await second.result).outcome).toBe("aborted");
    const early = session.streamTurn("3", { signal: AbortSignal.abort() });
    await expect(allOf(early)).rejects.toMatchObject({ code: "ABORTED" });
  });

  it("has one reader", async () => {
    const { session } = await open(createScriptedModel("one"));
    const stream = session.streamTurn("Hello");
    const first = allOf(stream);
    expect(() => stream[Symbol.asyncIterator]()).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
    expect(() => stream.toResponse()).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
    expect((await first).at(-1)?.name).toBe("turn.result");
  });

  it("throws what the turn throws, behind its events, and rejects `result` with it", async () => {
    const { session } = await open(createScriptedModel({ error: new Error("no server there") }));
    const stream = session.streamTurn("Hello");
    const names: string[] = [];
    await expect(async () => {
      for await (const { name } of stream) names.push(name);
    }).rejects.toMatchObject({ code: "MODEL_FAILED" });
    expect(names).toContain("turn.closed");
    await expect(stream.result).rejects.toMatchObject({ code: "MODEL_FAILED" });
  });

  it("ends with the error of a store that is closed in the middle", async () => {
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "slow", after: go.promise });
    const { session, store } = await open(script);
    const stream = session.streamTurn("Hello");
    await until(() => script.requests.length === 1);
    await store.close();
    go.resolve();
    await expect(allOf(stream)).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });

  it("ends as aborted when its session is closed, and a closed session starts none", async () => {
    const script = createScriptedModel({ text: "slow", hangs: true });
    const { session } = await open(script);
    const stream = session.streamTurn("Hello");
    await until(() => script.requests.length === 1);
    await session.close();
    expect((await stream.result).outcome).toBe("aborted");
    expect(() => session.streamTurn("More")).toThrow(expect.objectContaining({ code: "SESSION_CLOSED" }));
    expect(() => session.streamResume()).toThrow(expect.objectContaining({ code: "SESSION_CLOSED" }));
    expect(() => session.streamTurn(null as unknown as string)).toThrow();
  });

  it("continues a turn that was aborted", async () => {
    const script = createScriptedModel({ text: "slow", hangs: true }, "at last");
    const { session } = await open(script);
    for await (const event of session.streamTurn("Hello")) if (event.name === "call.started") break;
    const events = await allOf(session.streamResume());
    expect(events.at(-1)).toMatchObject({ name: "turn.result", turn: { text: "at last" } });
  });
});

describe("toResponse", () => {
  it("sends server-sent events with ids, a retry time and the headers of a stream", async () => {
    const { session, records } = await open(createScriptedModel("Hello you"));
    const response = session.streamTurn("Hello").toResponse({ retryMs: 1234, headers: { "x-turn": "1" } });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-turn": "1",
    });
    const copy = response.clone();
    expect((await copy.text()).startsWith("retry: 1234\n\n")).toBe(true);
    const frames = await framesOf(response);
    const ids = frames.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
    expect(ids).toEqual((await records()).map(({ seq }) => seq));
    const last = frames.at(-1);
    expect(last?.["event"]).toBe("turn.result");
    expect(JSON.parse(last?.["data"] ?? "")).toMatchObject({ turn: { outcome: "done", text: "Hello you" } });
    expect(last?.["data"]).not.toContain('"messages"');
  });

  it("cannot be broken by what the model or a program writes", async () => {
    const attack = 'a\n\ndata: {"name":"turn.result"}\n\nevent: evil\rid: 9\r\n: c\u2028\u0000';
    const { session } = await open(createScriptedModel(attack));
    const frames = await framesOf(session.streamTurn("Hello").toResponse());
    const delta = frames.find(({ event }) => event === "text.delta");
    expect(JSON.parse(delta?.["data"] ?? "")).toEqual({ name: "text.delta", text: attack });
    expect(frames.map(({ event }) => event)).not.toContain("evil");
    const plain = await open(createScriptedModel(attack));
    const texts = await framesOf(
      plain.session
        .streamTurn("Hello")
        .toResponse({ data: (event) => (event.name === "text.delta" ? event.text : undefined) }),
    );
    expect(texts).toEqual([{ event: "text.delta", data: attack.replaceAll(/\r\n|\r/g, "\n") }]);
  });

  it("aborts the turn when the client disconnects, or lets it finish when asked", async () => {
    for (const onDisconnect of ["abort", "finish"] as const) {
      const go = Promise.withResolvers<void>();
      const script = createScriptedModel({
        text: "whole",
        pieceLength: 1,
        after: go.promise,
        hangs: onDisconnect === "abort",
      });
      const { session, records } = await open(script);
      const stream = session.streamTurn("Hello");
      const reader = stream.toResponse({ onDisconnect }).body?.getReader();
      await reader?.read();
      await until(() => script.requests.length === 1);
      const cancelled = reader?.cancel();
      go.resolve();
      await cancelled;
      expect((await stream.result).outcome).toBe(onDisconnect === "abort" ? "aborted" : "done");
      expect(outline(await records()).at(-1)).toBe(onDisconnect === "abort" ? "turn:aborted" : "turn:done");
    }
  });

  it("sends the end of a turn that is aborted while the client reads", async () => {
    const script = createScriptedModel({ text: "half", hangs: true });
    const { session } = await open(script);
    const controller = new AbortController();
    const frames = framesOf(session.streamTurn("Hello", { signal: controller.signal }).toResponse());
    await until(() => script.requests.length === 1);
    controller.abort();
    const last = (await frames).at(-1);
    expect(JSON.parse(last?.["data"] ?? "")).toMatchObject({ name: "turn.result", turn: { outcome: "aborted" } });
  });

  it("sends a failure as an event, without the words of errors that are not ours", async () => {
    const { session, store } = await open(createScriptedModel({ error: new Error("secret host 10.0.0.7") }));
    const failed = (await framesOf(session.streamTurn("Hello").toResponse())).at(-1);
    expect(failed?.["event"]).toBe("turn.failed");
    expect(JSON.parse(failed?.["data"] ?? "")).toMatchObject({ code: "MODEL_FAILED", retryable: expect.any(Boolean) });
    await store.close();
    const closed = (await framesOf(session.streamTurn("Hello").toResponse())).at(-1);
    expect(JSON.parse(closed?.["data"] ?? "")).toMatchObject({ code: "STORE_CLOSED" });
  });

  it("sends a fixed sentence for each code, whatever the message of the error says", async () => {
    const hostile = "pid 4711 on build-host started 99: key sk-live-1 of ada@example.com in /home/ada/.env";
    const codes = ["STORE_UNREACHABLE", "SESSION_BUSY", "TURN_FENCED", "CONFIG_INVALID", "PATH_UNSAFE"] as const;
    for (const code of codes) {
      const error = new ThroughlineError(code, hostile, { remedy: hostile, details: { owner: "x", note: hostile } });
      const script = createScriptedModel("one");
      const { sessions } = createFixture({
        script,
        steps: [{ name: "own", when: "before-call", run: () => Promise.reject(error) }],
      });
      const session = await sessions.open("hostile");
      const frames = await framesOf(session.streamTurn("Hello").toResponse());
      const failed = frames.at(-1);
      expect([failed?.["event"], JSON.stringify(frames).includes("4711")]).toEqual(["turn.failed", false]);
      expect(JSON.stringify(failed)).not.toMatch(/pid|build-host|sk-live|ada/);
      const { message, remedy, retryable } = JSON.parse(failed?.["data"] ?? "") as Readonly<Record<string, unknown>>;
      expect([message, remedy]).toEqual([errorCodes[code].summary, errorCodes[code].remedy]);
      expect(retryable).toBe(error.retryable);
      await sessions.close();
    }
  });

  it("sends the text of a turn that ran before at once", async () => {
    const script = createScriptedModel({ text: "The whole answer.", pieceLength: 3 });
    const { session } = await open(script);
    const options = { idempotencyKey: "request-1" };
    const first = await allOf(session.streamTurn("Hello", options));
    expect(first.map(({ name }) => name)).not.toContain("text.snapshot");
    const again = await allOf(session.streamTurn("Hello", options));
    expect(again.map(({ name }) => name)).toEqual(["text.snapshot", "turn.result"]);
    expect(again[0]).toEqual({ name: "text.snapshot", text: "The whole answer." });
    const frames = await framesOf(session.streamTurn("Hello", options).toResponse());
    expect(frames.map((frame) => frame["event"])).toEqual(["text.snapshot", "turn.result"]);
    expect(script.requests).toHaveLength(1);
  });

  it("names no process and no machine, in a failure and in events", async () => {
    const { session, store } = await open(createScriptedModel("one"));
    const owner = "pid 4711 on build-host/a7c7 started 99";
    const leaseUntilMs = Date.now() + 60_000;
    await store.append(session.ref, [], { turn: { action: "open", turnId: "t", owner, leaseUntilMs, fence: 1 } });
    const busy = await framesOf(session.streamTurn("Hello", { whenBusy: "reject" }).toResponse());
    expect(JSON.parse(busy.at(-1)?.["data"] ?? "")).toMatchObject({ code: "SESSION_BUSY" });
    const waited = await framesOf(session.streamTurn("Hello", { whenBusy: "queue", waitMs: 10 }).toResponse());
    await store.append(session.ref, [], { turn: { action: "close", fence: 1 } });
    const frames = await framesOf(session.streamTurn("Hello").toResponse());
    expect(frames.at(-1)?.["event"]).toBe("turn.result");
    const text = JSON.stringify([...busy, ...waited, ...frames]);
    expect(text).toMatch(/another process/i);
    expect(text).not.toMatch(/pid \d|build-host/);
  });

  it("sends a comment while nothing happens", async () => {
    const go = Promise.withResolvers<void>();
    const { session } = await open(createScriptedModel({ text: "late", after: go.promise }));
    const reader = session.streamTurn("Hello").toResponse({ heartbeatMs: 10 }).body?.getReader();
    let text = "";
    while (!text.includes(": keep-alive\n\n: keep-alive\n\n")) {
      text += new TextDecoder().decode((await reader?.read())?.value);
    }
    go.resolve();
    while (!text.includes("turn.result")) text += new TextDecoder().decode((await reader?.read())?.value);
    expect((await reader?.read())?.done).toBe(true);
  });

  it("ends the stream and the turn when the program's own `data` throws", async () => {
    const script = createScriptedModel({ text: "half", hangs: true });
    const { session } = await open(script);
    const stream = session.streamTurn("Hello");
    const frames = await framesOf(
      stream.toResponse({
        data: () => {
          throw new Error("a fault of the program");
        },
      }),
    );
    expect(frames).toMatchObject([{ event: "turn.failed" }]);
    expect((await stream.result).outcome).toBe("aborted");
  });

  it("refuses unknown options and wrong values, before the events have a reader", async () => {
    const { session } = await open(createScriptedModel("one"));
    const stream = session.streamTurn("Hello");
    for (const options of [
      { heartbeat: 1 },
      { heartbeatMs: 0 },
      { retryMs: "1" },
      { onDisconnect: "stop" },
      { data: 1 },
    ])
      expect(() => stream.toResponse(options as object)).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
    expect((await allOf(stream)).at(-1)?.name).toBe("turn.result");
  });
});
