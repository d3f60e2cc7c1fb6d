import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SessionStore } from "@throughline/core";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { createScriptedModel } from "../../../packages/session/test/scripted-model.ts";
import { serve, type Answered, type Serving } from "./serving.ts";

const folder = mkdtempSync(join(quickFolder(), "throughline-whole-api-"));
const path = join(folder, "sessions.db");
let serving: Serving;
/** Another handle of the same database: a program that uses the library. */
let beside: SessionStore;
beforeAll(async () => {
  serving = await serve({ openStore: (onEvent) => createSqliteStore({ path, onEvent }) });
  beside = createSqliteStore({ path });
});
afterAll(async () => {
  await beside.close();
  await serving.close();
  rmSync(folder, { recursive: true, force: true });
});

const message = (role: string, content: unknown, more: object = {}): object => ({
  type: "message",
  message: { role, content, ...more },
});
const lines = { "content-type": "application/x-ndjson" };
const ask = (method: string, below: string, body?: unknown, headers = {}): Promise<Answered> =>
  serving.ask(method, `/sessions/${below}`, { ...(body === undefined ? {} : { body }), headers });
const itemsOf = ({ body }: Answered): readonly Readonly<Record<string, unknown>>[] =>
  body["items"] as readonly Readonly<Record<string, unknown>>[];

describe("messages of a provider", () => {
  const call = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: { path: "a" } }] };
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "text of a" }] };

  it("go in as they are, and come back valid for another provider", async () => {
    await serving.begin("shaped", []);
    const usage = { input_tokens: 10, output_tokens: 5 };
    const body = { messages: [{ role: "user", content: "read a" }, call, result], usage, model: "claude-x" };
    const headers = { "idempotency-key": "m1" };
    const first = await ask("POST", "shaped/messages?api=anthropic", body, headers);
    expect([first.status, first.body["count"]]).toEqual([201, 3]);
    const again = await ask("POST", "shaped/messages?api=anthropic", body, headers);
    expect([again.status, again.body["replayed"], again.body["head"]]).toEqual([201, true, first.body["head"]]);
    const { body: context } = await ask("GET", "shaped/context?provider=openai");
    expect(context["messages"]).toMatchObject([
      { role: "user", content: "read a" },
      { role: "assistant", tool_calls: [{ id: "t1", function: { name: "read" } }] },
      { role: "tool", tool_call_id: "t1", content: "text of a" },
    ]);
    const stored = itemsOf(await ask("GET", "shaped/records"));
    expect(stored[1]).toMatchObject({ record: { message: { model: "claude-x", usage: { input: 10, output: 5 } } } });
  });

  it("are refused with the place of what cannot be read, and nothing is stored", async () => {
    await serving.begin("refused", []);
    for (const [query, body] of [
      ["api=anthropic", { messages: [{ role: "robot", content: "x" }] }],
      ["api=anthropic", { messages: [{ role: "user", content: [{ type: "text", text: 5 }] }] }],
      ["api=ollama", { messages: [{ role: "assistant", content: 7 }] }],
      ["api=anthropic", { messages: [{ role: "user", content: "x" }], usage: { input_tokens: 1, output_tokens: 1 } }],
      ["api=anthropic", { messages: [call], usage: { tokens: "many" } }],
      ["api=nobody", { messages: [] }],
      ["", { messages: [] }],
    ] as const) {
      const { status, body: problem } = await ask("POST", `refused/messages?${query}`, body);
      expect([query, body, status, problem["code"]]).toEqual([query, body, 400, "INPUT_INVALID"]);
    }
    expect((await ask("GET", "refused/records")).body["count"]).toBe(0);
  });
});

describe("drafts as NDJSON", () => {
  it("are one atomic append, with its options in the query", async () => {
    await serving.begin("lines", []);
    const text = `${JSON.stringify({ id: "l1", ...message("user", "a") })}\r\n\n${JSON.stringify({ id: "l2", type: "note" })}`;
    const done = await ask("POST", "lines/records?expect=", text, lines);
    expect([done.status, itemsOf(done).map(({ id }) => id)]).toEqual([201, ["l1", "l2"]]);
    const late = await ask("POST", "lines/records?expect=", text.replaceAll(/"l/g, '"m'), lines);
    expect([late.status, late.body["code"]]).toEqual([409, "APPEND_CONFLICT"]);
    const bad = await ask("POST", "lines/records", `{"type":"note"}\n{"type":`, lines);
    expect(bad).toMatchObject({ status: 400, body: { code: "INPUT_INVALID", details: { line: 2 } } });
    expect((await ask("POST", "lines/records?expect=l2", { drafts: [] })).status).toBe(400);
    expect((await ask("GET", "lines/records")).body["count"]).toBe(2);
  });
});

describe("a choice of records", () => {
  it("is by ids and by role, and says where to read on", async () => {
    const drafts = Array.from({ length: 6 }, (_, at) => ({
      id: `c${at}`,
      ...message(at % 2 === 0 ? "user" : "assistant", `${at}`),
    }));
    await serving.begin("chosen", drafts);
    const idsOf = async (query: string): Promise<readonly unknown[]> => {
      const answer = await ask("GET", `chosen/records?${query}`);
      return [...itemsOf(answer).map(({ id }) => id), answer.body["nextSeq"]];
    };
    expect(await idsOf("ids=c4,c1")).toEqual(["c1", "c4", null]);
    expect(await idsOf("role=user")).toEqual(["c0", "c2", "c4", null]);
    expect(await idsOf("role=user&limit=2")).toEqual(["c0", "c2", 3]);
    expect(await idsOf("role=user&limit=2&after=3")).toEqual(["c4", null]);
    expect(await idsOf("role=assistant&order=descending&limit=1")).toEqual(["c5", 6]);
    expect(await idsOf("limit=2")).toEqual(["c0", "c1", 2]);
    expect(await idsOf("limit=2&after=4")).toEqual(["c4", "c5", null]);
    expect(await idsOf("order=descending&limit=5&before=6")).toEqual(["c4", "c3", "c2", "c1", "c0", null]);
    const missing = await ask("GET", "chosen/records?ids=c1,nothing");
    expect(missing).toMatchObject({ status: 404, body: { code: "RECORD_NOT_FOUND", details: { ids: ["nothing"] } } });
    expect((await ask("GET", "chosen/records?ids=c1&role=user")).status).toBe(400);
    expect((await ask("GET", `chosen/records?ids=${Array.from({ length: 201 }, () => "x").join(",")}`)).status).toBe(
      400,
    );
  });

  it("is a part of one large block, in whole characters", async () => {
    const text = "€".repeat(1000);
    await serving.begin("blocks", [
      {
        id: "b",
        ...message("user", [
          { type: "text", text },
          { type: "thinking", thinking: "so" },
        ]),
      },
    ]);
    let joined = "";
    for (let from: number | null = 0; from !== null;) {
      const { body }: Answered = await ask("GET", `blocks/records/b?block=0&from=${from}&bytes=700`);
      expect([body["kind"], body["message"]]).toEqual(["block", undefined]);
      joined += String(body["text"]);
      from = body["nextFrom"] as number | null;
    }
    expect(joined).toBe(text);
    expect((await ask("GET", "blocks/records/b?block=0&from=4&bytes=4")).body).toMatchObject({
      from: 3,
      text: "€",
      totalBytes: 3000,
    });
    expect((await ask("GET", "blocks/records/b?block=2")).status).toBe(400);
    expect((await ask("GET", "blocks/records/b?block=0&from=3001")).status).toBe(400);
    expect((await ask("GET", "blocks/records/b?from=1")).status).toBe(400);
  });
});

describe("what is known of a session", () => {
  it("is an outline in columns, a gauge, findings, and a file", { tags: ["slow"] }, async () => {
    const drafts = [
      { id: "o1", timestamp: "2026-01-01T00:00:00.000Z", ...message("user", "hello") },
      { id: "o2", timestamp: "2026-01-01T00:00:02.000Z", ...message("assistant", [{ type: "text", text: "hi" }]) },
    ];
    await serving.begin("known", drafts);
    const { body: outline } = await ask("GET", "known/outline");
    expect(outline).toMatchObject({
      count: 2,
      nextFromSeq: null,
      names: { type: ["message"], role: ["user", "assistant"] },
      columns: { seq: [1, 1], parent: [0, 1], role: [0, 1], side: [0, 0], tsMs: [expect.any(Number), 2000] },
    });
    expect((await ask("GET", "known/outline?fromSeq=2&toSeq=2")).body).toMatchObject({
      count: 1,
      columns: { seq: [2], parent: [null] },
    });
    const { body: context } = await ask("GET", "known/context?window=1000&model=anthropic/claude-opus-5");
    const gauge = context["gauge"] as { readonly tokens: number };
    const parts = Object.values(context["breakdown"] as Readonly<Record<string, number>>);
    expect(gauge).toMatchObject({ windowTokens: 1000, source: "tokenizer", percent: expect.any(Number) });
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(gauge.tokens);
    expect(itemsOf(await ask("GET", "known/findings"))).toEqual([]);
    const { sessionId } = (await ask("GET", "known")).body;
    const file = await ask("GET", "known/export");
    expect(file.headers.get("content-disposition")).toBe(`attachment; filename="${String(sessionId)}.jsonl"`);
    expect(
      file.text
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { id: string }).id),
    ).toEqual([sessionId, "o1", "o2"]);
    for (const to of ["openclaw", "pi", "claw0", "claude-code", "codex"]) {
      const { status, text } = await ask("GET", `known/export?to=${to}`);
      expect([to, status, text.includes("hello")]).toEqual([to, 200, true]);
    }
    expect((await ask("GET", "known/export?to=nothing")).body["code"]).toBe("INPUT_INVALID");
    expect(itemsOf(await ask("GET", "known/export?to=pi&remarks=true"))[0]).toMatchObject({ what: "added" });
  });

  it("makes pages, counts what their secret scan replaces, and refuses what is for pages alone", async () => {
    const text = `Use ${["tl_abcdefghijkl", "x".repeat(43)].join("_")}. <script>`;
    await serving.begin("page", [message("user", text)]);
    const html = await ask("GET", "page/export?to=html");
    expect(html.text).toContain("Use [Throughline token]. &lt;script>");
    expect((await ask("GET", "page/export?to=markdown&level=words&images=true")).text).toContain("## 1. Use");
    expect((await ask("GET", "page/export?to=html&redact=off")).text).toContain("tl_abcdefghijkl_");
    expect((await ask("GET", "page/export?to=html&pattern=U%5Bs%5De")).text).toContain("[own pattern] [Throughline");
    const remarks = await ask("GET", "page/export?to=html&remarks=true");
    expect(itemsOf(remarks)).toMatchObject([{ kind: "remark", rule: "Throughline token", count: 1 }]);
    expect(remarks.body["files"]).toMatchObject([{ records: 1 }]);
    const both = await ask("GET", "page/export?to=html&pattern=U%5Bs%5De&pattern=s%5Bc%5Dript");
    expect(both.text).toContain("[own pattern] [Throughline token]. &lt;[own pattern]>");
    const levels = ["to=html&level=full&level=words", "to=html&level=1", "to=pi&level=words"];
    for (const query of ["to=html&part=2", "to=html&pattern=(a)%5C1", ...levels])
      expect([query, (await ask("GET", `page/export?${query}`)).body["code"]]).toEqual([query, "INPUT_INVALID"]);
  });

  it("finds what no provider takes", async () => {
    const orphan = message("toolResult", "x", { toolCallId: "nobody", toolName: "read" });
    await serving.begin("odd", [message("user", "a"), orphan]);
    const codes = itemsOf(await ask("GET", "odd/findings")).map(({ code }) => code);
    expect(codes).toContain("TOOL_RESULT_ORPHAN");
  });

  it("does not have what this version does not make", async () => {
    await serving.begin("later");
    for (const below of ["later/calls/c1/request?payload=bytes", "later/events?delta=true"]) {
      const { status, body } = await ask("GET", below);
      // A call that is not there has no bytes either.
      const expected = below.endsWith("payload=bytes") ? [404, "RECORD_NOT_FOUND"] : [501, "CAPABILITY_UNSUPPORTED"];
      expect([below, status, body["code"]]).toEqual([below, ...expected]);
    }
  });
});

describe("summaries", () => {
  const talk = Array.from({ length: 30 }, (_, at) => [
    message("user", `Look after quay ${at}. `.repeat(20)),
    message("assistant", [{ type: "text", text: `Quay ${at} is looked after. `.repeat(20) }]),
  ]).flat();

  it("are planned, made by rules, and not made twice", async () => {
    await serving.begin("long", talk);
    const planned = await ask("POST", "long/compact", { dryRun: true, window: 8000 });
    expect(planned.body).toMatchObject({
      kind: "compaction",
      state: "planned",
      firstKeptSeq: expect.any(Number),
      id: null,
    });
    const compact = (): Promise<Answered> => ask("POST", "long/compact", { window: 8000 });
    const together = await Promise.all(Array.from({ length: 12 }, compact));
    const made = together.filter(({ body }) => body["state"] === "compacted").map(({ body }) => body["id"]);
    // Who asks while one runs gets its result.
    expect(new Set(made).size).toBeLessThan(together.length);
    const { entry } = (await ask("GET", "long?entry=true")).body;
    expect(entry).toMatchObject({ compactionCount: new Set(made).size });
    let state: unknown = "compacted";
    for (let tries = 0; tries < 10 && state === "compacted"; tries++) ({ state } = (await compact()).body);
    expect(state).toBe("nothing");
    // The log keeps every record.
    expect((await ask("GET", "long/records?role=user&limit=500")).body["count"]).toBe(30);
  });

  it("are given again to a repeat with the same key, whatever came since", async () => {
    await serving.begin("keyed", talk);
    const compact = (key: string, body = { window: 8000 }): Promise<Answered> =>
      serving.ask("POST", "/sessions/keyed/compact", { body, headers: { "idempotency-key": key } });
    const first = await compact("one");
    expect(first.body).toMatchObject({ state: "compacted", source: "extractive", messagesRemoved: expect.any(Number) });
    await serving.ask("POST", "/sessions/keyed/records", { body: { drafts: [message("user", "More.")] } });
    expect((await compact("one")).body).toEqual(first.body);
    const other = await compact("one", { window: 9000 });
    expect([other.status, other.body["code"]]).toEqual([422, "IDEMPOTENCY_MISMATCH"]);
    const items = (await ask("GET", "keyed/records?limit=500")).body["items"] as readonly { readonly type: string }[];
    expect(items.filter(({ type }) => type === "compaction")).toHaveLength(1);
  });

  it("are refused while a turn runs", async () => {
    await serving.begin("turning", talk);
    await ask("POST", "turning/turns", { owner: "a" });
    expect((await ask("POST", "turning/compact", { window: 8000 })).body["code"]).toBe("SESSION_BUSY");
  });

  it("are checkpoints, of which a repeat gives the newest", async () => {
    await serving.begin("marked", talk);
    const planned = await ask("POST", "marked/checkpoint", { dryRun: true });
    expect(planned.body).toMatchObject({ kind: "checkpoint", id: null, coversToSeq: 60 });
    const made = await ask("POST", "marked/checkpoint");
    expect([made.status, made.body]).toMatchObject([200, { kind: "checkpoint", id: expect.any(String) }]);
    expect((await ask("POST", "marked/checkpoint")).body["id"]).toBe(made.body["id"]);
    expect(itemsOf(await ask("GET", "marked/checkpoints")).map(({ id }) => id)).toEqual([made.body["id"]]);
    expect((await ask("POST", "empty-one/checkpoint")).status).toBe(404);
    await serving.begin("empty-one", []);
    const nothing = await ask("POST", "empty-one/checkpoint");
    expect(nothing).toMatchObject({ status: 400, body: { details: { reason: "nothing-new" } } });
  });
});

describe("one call", () => {
  it("is read with what it was given, and nothing else", async () => {
    const chat = createScriptedModel("one", "two");
    const sessions = createSessions({ store: beside, model: { chat, modelId: "scripted" } });
    const session = await sessions.open("called");
    await session.runTurn("first");
    await session.runTurn("second");
    await sessions.close();
    const calls = itemsOf(await ask("GET", `${session.key}/calls`));
    expect(calls).toHaveLength(2);
    for (const [at, call] of calls.entries()) {
      const one = await ask("GET", `${session.key}/calls/${String(call["callId"])}`);
      expect(one.body).toEqual(call);
      const request = await ask("GET", `${session.key}/calls/${String(call["callId"])}/request`);
      const { messages = [] } = chat.requests[at] ?? {};
      expect(request.body).toMatchObject({ kind: "request", systemHash: null, messages, omitted: [] });
      const kept = { recordId: expect.any(String), seq: expect.any(Number), reason: "kept", rule: null };
      expect(request.body["places"]).toEqual(messages.map(() => [kept]));
    }
    const [first] = itemsOf(await ask("GET", `${session.key}/records?role=user`));
    expect((await ask("GET", `${session.key}/calls/${String(first?.["id"])}`)).body["code"]).toBe("RECORD_NOT_FOUND");
  });

  it("may have been written by anybody", async () => {
    const hostile = (data: object): object => ({
      type: "custom",
      customType: "throughline.call",
      v: 1,
      critical: false,
      data,
    });
    const usual = { turnId: "t", step: 1, provider: "p", api: "anthropic", model: "m", toSeq: 1, outcome: "answered" };
    await serving.begin("forged", [
      message("user", "x"),
      { id: "f1", ...hostile({ ...usual, fromSeq: -5 }) },
      { id: "f2", ...hostile({ ...usual, fromSeq: 1.5, toSeq: 1e300, more: 1 }) },
      { id: "f3", ...hostile({ ...usual, api: "nobody" }) },
    ]);
    expect((await ask("GET", "forged/calls/f1")).body).toMatchObject({ fromSeq: 1, toSeq: 1 });
    expect((await ask("GET", "forged/calls/f1/request")).status).toBe(200);
    expect((await ask("GET", "forged/calls/f2")).body["code"]).toBe("RECORD_NOT_FOUND");
    expect((await ask("GET", "forged/calls/f3/request")).body["code"]).toBe("CAPABILITY_UNSUPPORTED");
  });
});

describe("a turn over HTTP", () => {
  it("that is left open is interrupted for everybody else", { tags: ["slow"] }, async () => {
    await serving.begin("left", []);
    const sessions = createSessions({ store: beside, model: { chat: createScriptedModel(), modelId: "scripted" } });
    await ask("POST", "left/turns", {
      owner: "curl",
      leaseMs: 1000,
      turnId: "gone",
      drafts: [message("user", "are you there")],
    });
    await expect
      .poll(async () => (await sessions.open("left")).interruptedTurn)
      .toMatchObject({
        turnId: "gone",
        owner: "curl",
        text: "are you there",
      });
    const next = await ask("POST", "left/turns", { owner: "python" });
    expect(next.body).toMatchObject({ fence: 2, interruptedTurn: { turnId: "gone", owner: "curl" } });
    expect((await ask("POST", "left/turns/1/close")).body["code"]).toBe("TURN_FENCED");
    await ask("POST", "left/turns/2/close", { outcome: "failed" });
    expect((await sessions.open("left")).interruptedTurn).toBeNull();
    const states = itemsOf(await ask("GET", "left/records"))
      .map(({ record }) => (record as { readonly data?: { readonly state?: string } }).data?.state)
      .filter((state) => state !== undefined);
    expect(states).toEqual(["open", "interrupted", "open", "failed"]);
    await sessions.close();
  });

  it("takes over a turn that a program left", { tags: ["slow"] }, async () => {
    await serving.begin("over", []);
    const at = { namespace: "", agentId: "main", key: "over" };
    const turn = { action: "open", turnId: "t", owner: "loop", fence: 1, leaseUntilMs: Date.now() + 1000 } as const;
    await beside.append(at, [], { turn });
    const busy = await ask("POST", "over/turns", { owner: "curl" });
    expect(busy).toMatchObject({ status: 409, body: { details: { turn: { owner: "loop" } } } });
    const waited = await ask("POST", "over/turns", { owner: "curl", whenBusy: "wait", waitMs: 5000 });
    expect(waited.body).toMatchObject({ fence: 2, interruptedTurn: { turnId: "t", owner: "loop" } });
  });

  it("is opened and closed once, however often it is asked for", async () => {
    await serving.begin("once", []);
    const open = (): Promise<Answered> =>
      ask("POST", "once/turns", { owner: "a", drafts: [message("user", "q")] }, { "idempotency-key": "o" });
    const close = (text = "r"): Promise<Answered> =>
      ask("POST", "once/turns/1/close", { drafts: [message("assistant", text)] }, { "idempotency-key": "c" });
    const opened = [await open(), await open()];
    expect(opened.map(({ body }) => [body["fence"], body["replayed"], body["ids"]])).toEqual([
      [1, false, opened[0]?.body["ids"]],
      [1, true, opened[0]?.body["ids"]],
    ]);
    const closed = [await close(), await close()];
    expect(closed.map(({ status, body }) => [status, body["replayed"], body["ids"]])).toEqual([
      [200, false, closed[0]?.body["ids"]],
      [200, true, closed[0]?.body["ids"]],
    ]);
    expect((await close("other")).body["code"]).toBe("IDEMPOTENCY_MISMATCH");
    // Another has the turn now: the first must not be given its fence.
    expect((await ask("POST", "once/turns", { owner: "b" })).body["fence"]).toBe(2);
    expect((await open()).body).toMatchObject({ fence: 1, replayed: true, ids: opened[0]?.body["ids"] });
    expect((await close()).body).toMatchObject({ replayed: true, leaseUntilMs: null });
    const conflict = await ask("POST", "once/turns", { owner: "c", expect: { head: "nothing" } });
    expect(conflict.status).toBe(409);
    expect((await ask("GET", "once/records?role=user")).body["count"]).toBe(1);
  });
});
