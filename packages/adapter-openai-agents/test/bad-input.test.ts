import { UserError, type AgentInputItem } from "@openai/agents-core";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasErrorCode } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { endingStore } from "@throughline/test-kit";
import { createAgentsSession } from "../src/agents-session.ts";
import { recordRun } from "../src/record-run.ts";
import { answer, call, newSession, outline, runner, scriptedAgent, user } from "./scripted.ts";

const asItem = (value: unknown): AgentInputItem => value as AgentInputItem;

describe("bad input", () => {
  it("keeps items of types that nobody knows, in their place", async () => {
    const items = [
      user("one"),
      asItem({ type: "hologram", payload: { deep: [1, null, "x"] } }),
      asItem({ type: "hosted_tool_call", id: "h1", name: "web_search_call", status: "completed" }),
      asItem({ type: "function_call", callId: "c9", name: "n", arguments: "{broken" }),
      asItem({ type: "function_call_result", callId: "nobody", name: "n", status: "completed", output: "x" }),
      asItem({ type: "message", role: "wizard", content: "?" }),
      asItem({ nothing: true }),
      asItem({ type: "message", role: "user", content: [{ type: "input_text", text: "\u0000\u202e\ud800" }] }),
      asItem(JSON.parse('{"type":"message","role":"user","content":"p","__proto__":{"polluted":true}}')),
    ];
    const store = createMemoryStore();
    const session = newSession({ store });
    await session.addItems(items);
    expect(await newSession({ store }).getItems()).toEqual(items);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    for (const item of items.toReversed()) expect(await session.popItem()).toEqual(item);
    expect(await session.popItem()).toBeUndefined();
  });

  it.each([[null], [7], ["text"], [[]], [{ f: () => 1 }], [{ n: 1n }], [{ d: new Date(0) }], [{ x: Number.NaN }]])(
    "refuses what is no item, and stores nothing of the call: %s",
    async (value) => {
      const session = newSession();
      await expect(session.addItems([user("one"), asItem(value)])).rejects.toThrow(UserError);
      expect(await session.getItems()).toEqual([]);
    },
  );

  it("refuses an item that holds itself, one that is too deep and one that is too large", async () => {
    const session = newSession({ store: createMemoryStore({ limits: { recordBytes: 2000 } }) });
    const circle: Record<string, unknown> = { type: "message", role: "user" };
    circle["content"] = [circle];
    let deep: unknown = "x";
    for (let level = 0; level < 300; level++) deep = [deep];
    const large = "x".repeat(3000);
    await expect(session.addItems([asItem(circle)])).rejects.toThrow(UserError);
    for (const [content, code] of [
      [[{ type: "input_text", text: deep }], "RECORD_INVALID"],
      [large, "RECORD_TOO_LARGE"],
    ] as const) {
      const refused = await session
        .addItems([user("one"), asItem({ type: "message", role: "user", content })])
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(UserError);
      expect(hasErrorCode((refused as Error).cause, code)).toBe(true);
    }
    expect(await session.getItems()).toEqual([]);
  });

  it.each([
    "__proto__",
    "../x",
    "x".repeat(300),
    "x".repeat(900),
    "🦉 é",
    "",
    " ",
    "a\u0000b",
    "\ud800",
    "%empty",
    "x:thread:y",
  ])("keeps sessions of hostile ids apart: %j", async (sessionId) => {
    const store = createMemoryStore();
    const session = createAgentsSession({ store, sessionId });
    const other = createAgentsSession({ store, sessionId: `${sessionId}x` });
    await session.addItems([user("mine")]);
    await other.addItems([user("theirs")]);
    expect(await session.getSessionId()).toBe(sessionId);
    expect(await createAgentsSession({ store, sessionId }).getItems()).toEqual([user("mine")]);
  });

  it("refuses unknown options", () => {
    expect(() => createAgentsSession({ store: createMemoryStore(), sesionId: "s" } as never)).toThrow(/sessionId/);
    expect(() => recordRun(runner, newSession(), { leaseMs: 0 })).toThrow(/leaseMs/);
  });

  it("loses nothing of two handles that write at once", { tags: ["slow"] }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-agents-"));
    const path = join(folder, "sessions.sqlite");
    try {
      await using one = createSqliteStore({ path });
      await using two = createSqliteStore({ path });
      const sessions = [one, two].map((store) => createAgentsSession({ store, sessionId: "s" }));
      const texts = Array.from({ length: 20 }, (_, at) => `item ${at}`);
      await Promise.all(texts.map((text, at) => sessions[at % 2]?.addItems([user(text), user(`${text}, second`)])));
      for (const session of sessions) {
        const stored = (await session.getItems()).map((item) => (item as { content: string }).content);
        expect(stored.toSorted()).toEqual(texts.flatMap((text) => [text, `${text}, second`]).toSorted());
        for (const text of texts) expect(stored[stored.indexOf(text) + 1]).toBe(`${text}, second`);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("does not see what was redacted, also in a session that is open", async () => {
    const store = createMemoryStore();
    const session = newSession({ store });
    await session.addItems([user("the word is heron"), answer("noted") as AgentInputItem]);
    await session.replaceHistoryWithCompaction([
      asItem({ type: "compaction", encrypted_content: "o" }),
      user("the word is heron"),
    ]);
    const { redactRecords } = await import("@throughline/core");
    const { ref } = session.log();
    const [first] = (await session.log().view()).records;
    await redactRecords(store, ref, [first?.id ?? ""], { reason: "secret" });
    expect(JSON.stringify(await session.getItems())).not.toContain("heron");
    expect(JSON.stringify(await Array.fromAsync(store.read(ref, { payload: "source" })))).not.toContain("heron");
  });

  it("ends a run with the SDK's error when the store goes away, whole records before it", async () => {
    // Each call of the store in turn: what was stored by then is a beginning of the run, and no tool ran unrecorded.
    const whole = "user function_call function_call_result assistant".split(" ");
    let made = Number.POSITIVE_INFINITY;
    for (let calls = 1; calls <= made; calls += 2) {
      const store = createMemoryStore();
      const ending = endingStore(store, calls, true);
      const session = newSession({ store: ending.store });
      const error = await recordRun(runner, session)
        .run(scriptedAgent([[call], [answer("done")]]), "pay", { session })
        .catch((thrown: unknown) => thrown);
      made = Math.max(calls, ending.made());
      if (ending.made() < calls) break;
      expect(error).toBeInstanceOf(UserError);
      expect(hasErrorCode((error as Error).cause, "STORE_CLOSED")).toBe(true);
      const left = (await outline(newSession({ store }))).split(" ").filter((word) => word !== "");
      expect(whole.slice(0, left.length)).toEqual(left);
    }
  });
});
