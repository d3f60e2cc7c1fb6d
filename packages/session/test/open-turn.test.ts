import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  assistantMessage,
  type Clock,
  sessionRef,
  type SessionStore,
  type StoredRecord,
  toolResult,
  userMessage,
} from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createHistory } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { openTurn } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { openStore } from "./process-store.ts";
import { allRecords, createFixture, key, outline } from "./session-fixture.ts";

const ref = sessionRef({ key });
const call = { type: "toolCall", id: "call-1", name: "list_files", arguments: {} } as const;

function rendered(records: readonly StoredRecord[]): readonly unknown[] {
  const target = historyTargets.get("anthropic");
  if (target === undefined) throw new Error("There is no target for Anthropic.");
  const history = createHistory(target);
  history.append(records);
  return history.render().messages;
}

describe("a turn of a program with a loop of its own", () => {
  it("stores what it begins with, its steps and its end, and gives back what the store gives", async () => {
    await using store = createMemoryStore();
    const turn = await openTurn(store, key, { drafts: [userMessage("What is here?")] });
    const known = [...turn.records];
    known.push(...(await turn.append([assistantMessage([call], { stopReason: "toolUse" })])));
    known.push(...(await turn.append([toolResult(call, "3 files")])));
    known.push(...(await turn.close([assistantMessage("There are 3 files.")])));
    const records = await allRecords(store);
    expect(outline(records)).toEqual([
      "turn:open",
      "user",
      "assistant:toolUse",
      "toolResult",
      "assistant:stop",
      "turn:done",
    ]);
    expect(known.map(({ record }) => record)).toEqual(records.slice(0, -1).map(({ record }) => record));
    expect(rendered(known)).toEqual(rendered(records));
    expect((await store.load(ref))?.head.turn).toBeNull();
  });

  it("gives the records of the window, so that the next turn sends the whole conversation", async () => {
    await using store = createMemoryStore();
    const first = await openTurn(store, key, { drafts: [userMessage("Hello")] });
    await first.close([assistantMessage("Hi!")]);
    await using second = await openTurn(store, key, { drafts: [userMessage("And now?")] });
    expect(rendered(second.records)).toMatchObject([{ role: "user" }, { role: "assistant" }, { role: "user" }]);
  });

  it("leaves out what a rewind has left behind, also when the turn begins with nothing", async () => {
    await using store = createMemoryStore();
    const first = await openTurn(store, key, { drafts: [userMessage("Hello")] });
    const [answer] = await first.close([assistantMessage("Hi!")]);
    const left = await openTurn(store, key, { drafts: [userMessage("Left behind")] });
    await left.close([assistantMessage("This too")]);
    const targetId = answer?.id ?? null;
    await store.append(ref, [{ type: "leaf", targetId }], { rewindTo: targetId });
    await using turn = await openTurn(store, key);
    expect(JSON.stringify(rendered(turn.records))).toContain("Hi!");
    expect(JSON.stringify(rendered(turn.records))).not.toContain("Left behind");
  });

  it("shares the session with the facade", { tags: ["slow"] }, async () => {
    const { store, sessions } = createFixture();
    const turn = await openTurn(store, key, { drafts: [userMessage("Hello")] });
    await using session = await sessions.open(key);
    await expect(session.runTurn("In between", { whenBusy: "reject" })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await turn.close([assistantMessage("Hi!")]);
    await session.runTurn("And now?");
    const texts = (await session.messages()).messages;
    expect(JSON.stringify(texts)).toMatch(/Hello.*Hi!.*And now\?/);
    await sessions.close();
  });

  it("ends as aborted where its program leaves it without closing, and the next one need not wait", async () => {
    await using store = createMemoryStore();
    const leave = async (): Promise<void> => {
      await using _turn = await openTurn(store, key, { drafts: [userMessage("Hello")] });
      throw new Error("the loop failed");
    };
    await expect(leave()).rejects.toThrow("the loop failed");
    expect(outline(await allRecords(store))).toEqual(["turn:open", "user", "turn:aborted"]);
    await using next = await openTurn(store, key, { whenBusy: "reject" });
    expect(next.interruptedTurn).toBeNull();
  });

  it("takes nothing after its end", async () => {
    await using store = createMemoryStore();
    const turn = await openTurn(store, key, { drafts: [userMessage("Hello")] });
    await turn.close([], { outcome: "failed", entry: { label: "broken" } });
    await expect(turn.append([userMessage("late")])).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await expect(turn.close()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await turn[Symbol.asyncDispose]();
    expect(outline(await allRecords(store))).toEqual(["turn:open", "user", "turn:failed"]);
    expect((await store.load(ref))?.entry.label).toBe("broken");
  });

  it("stays open when its last records are refused", async () => {
    await using store = createMemoryStore();
    const turn = await openTurn(store, key, { drafts: [userMessage("Hello")] });
    const bad = { type: "message", message: { role: "assistant", contnt: "x" } } as never;
    await expect(turn.close([bad])).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await turn.close([assistantMessage("Hi!")]);
    expect(outline(await allRecords(store))).toEqual(["turn:open", "user", "assistant:stop", "turn:done"]);
  });
});

describe("a second turn while one is open", () => {
  it("waits for one of this process", async () => {
    await using store = createMemoryStore();
    const first = await openTurn(store, key, { drafts: [userMessage("one")] });
    const second = openTurn(store, key, { drafts: [userMessage("two")] });
    await first.close([assistantMessage("1")]);
    await (await second).close([assistantMessage("2")]);
    expect(outline(await allRecords(store)).filter((name) => !name.startsWith("turn"))).toEqual([
      "user",
      "assistant:stop",
      "user",
      "assistant:stop",
    ]);
  });

  it("is refused with reject, after the longest wait, and for an owner of another name", async () => {
    await using store = createMemoryStore();
    await using _first = await openTurn(store, key, { owner: "worker-1" });
    await expect(openTurn(store, key, { owner: "worker-1", whenBusy: "reject" })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    await expect(openTurn(store, key, { owner: "worker-1", waitMs: 30 })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    await expect(openTurn(store, key)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  });

  it("stops waiting when it is aborted, and leaves nothing behind", async () => {
    await using store = createMemoryStore();
    await using _first = await openTurn(store, key);
    const controller = new AbortController();
    const second = openTurn(store, key, { drafts: [userMessage("two")], signal: controller.signal });
    setTimeout(() => controller.abort(new Error("enough")), 20);
    await expect(second).rejects.toMatchObject({ code: "ABORTED" });
    expect(outline(await allRecords(store))).toEqual(["turn:open"]);
  });

  it("takes over when the lease ran out: the first one is told, and writes nothing more", async () => {
    await using store = createMemoryStore();
    // A clock on which no time passes for the first turn: it never renews.
    const stopped: Clock = {
      nowMs: () => systemClock.nowMs(),
      sleep: (_delayMs, signal) => systemClock.sleep(60_000, signal),
    };
    const late = await openTurn(store, key, { leaseMs: 100, clock: stopped, drafts: [userMessage("one")] });
    await using next = await openTurn(store, key, { whenBusy: "queue", drafts: [userMessage("two")] });
    expect(next.interruptedTurn).toMatchObject({ turnId: late.turnId, text: "one" });
    await expect(late.append([assistantMessage("late")])).rejects.toMatchObject({ code: "TURN_FENCED" });
    expect(late.signal.aborted).toBe(true);
    await expect(late.close([assistantMessage("late")])).rejects.toMatchObject({ code: "TURN_FENCED" });
    await late[Symbol.asyncDispose]();
    expect(JSON.stringify(await allRecords(store))).not.toContain("late");
  });

  it("renews its lease while it works", { tags: ["slow"] }, async () => {
    await using store = createMemoryStore();
    await using turn = await openTurn(store, key, { leaseMs: 100 });
    await systemClock.sleep(400);
    await expect(openTurn(store, key, { whenBusy: "reject" })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(turn.signal.aborted).toBe(false);
  });
});

describe("a turn with an idempotency key", () => {
  const ask = { drafts: [userMessage("What is here?")], idempotencyKey: "message-1" };
  const rolesOf = (records: readonly StoredRecord[]): readonly unknown[] =>
    records.map(({ record }) => (record["message"] as { role?: unknown } | undefined)?.role);

  it("is done once: a repeat is closed from the beginning and has what the turn stored", async () => {
    await using store = createMemoryStore();
    const before = await openTurn(store, key, { drafts: [userMessage("Hello")] });
    await before.close([assistantMessage("Hi!")]);
    const first = await openTurn(store, key, ask);
    expect(first.isClosed).toBe(false);
    await first.append([assistantMessage([call], { stopReason: "toolUse" }), toolResult(call, "3 files")]);
    await first.close([assistantMessage("3 files.")]);
    expect(first.isClosed).toBe(true);
    const after = await openTurn(store, key, { drafts: [userMessage("Thanks")], idempotencyKey: "message-2" });
    await after.close([assistantMessage("Welcome")]);
    const length = (await allRecords(store)).length;

    await using again = await openTurn(store, key, ask);
    expect(again.isClosed).toBe(true);
    expect(again.turnId).toBe(first.turnId);
    expect(rolesOf(again.records)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    await expect(again.append([userMessage("late")])).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await expect(again.close()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await again[Symbol.asyncDispose]();
    expect(await allRecords(store)).toHaveLength(length);
  });

  it("resumes until it is done, and stores its drafts once", async () => {
    await using store = createMemoryStore();
    const leave = async (): Promise<void> => {
      await using turn = await openTurn(store, key, ask);
      await turn.append([assistantMessage([call], { stopReason: "toolUse" })]);
      throw new Error("the tool failed");
    };
    await expect(leave()).rejects.toThrow("the tool failed");
    const failing = await openTurn(store, key, ask);
    expect(rolesOf(failing.records.filter(({ side }) => !side))).toEqual(["user", "assistant"]);
    await failing.close([toolResult(call, "3 files")], { outcome: "failed" });
    await using turn = await openTurn(store, key, ask);
    await turn.close([assistantMessage("3 files.")]);
    expect(outline(await allRecords(store))).toEqual([
      "turn:open",
      "user",
      "assistant:toolUse",
      "turn:aborted",
      "turn:open",
      "toolResult",
      "turn:failed",
      "turn:open",
      "assistant:stop",
      "turn:done",
    ]);
    const done = await openTurn(store, key, ask);
    expect(rolesOf(done.records)).toEqual(["user", "assistant", "toolResult", "assistant"]);
  });

  it("waits for the one that runs and has its result, or is refused", async () => {
    await using store = createMemoryStore();
    const first = await openTurn(store, key, ask);
    await expect(openTurn(store, key, { ...ask, whenBusy: "reject" })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    const second = openTurn(store, key, ask);
    await systemClock.sleep(30);
    await first.close([assistantMessage("3 files.")]);
    expect(rolesOf((await second).records)).toEqual(["user", "assistant"]);
  });

  it("is refused with other drafts", async () => {
    await using store = createMemoryStore();
    await (await openTurn(store, key, ask)).close();
    const other = openTurn(store, key, { ...ask, drafts: [userMessage("Something else")] });
    await expect(other).rejects.toMatchObject({ code: "IDEMPOTENCY_MISMATCH" });
    await expect(openTurn(store, key, { ...ask, idempotencyKey: " " })).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
  });

  it("is the same turn for the facade", async () => {
    const { store, sessions, model } = createFixture();
    await using session = await sessions.open(key);
    const turn = await session.runTurn("What is here?", { idempotencyKey: "message-1" });
    const asked = model.requests.length;
    await using again = await openTurn(store, key, ask);
    expect(again.isClosed).toBe(true);
    expect(again.turnId).toBe(turn.turnId);
    expect(model.requests).toHaveLength(asked);
    await sessions.close();
  });
});

describe("what is not an option or a draft", () => {
  const cases: readonly (readonly [string, object, string])[] = [
    ["a misspelt option", { draft: [] }, "did you mean `drafts`?"],
    ["an unknown way to wait", { whenBusy: "branch" }, "`whenBusy` must be one of"],
    ["a lease that is too short", { leaseMs: 1 }, "`leaseMs` must be"],
    ["an empty owner", { owner: " " }, "`owner` must be"],
    ["one draft in place of a list", { drafts: userMessage("x") }, "`drafts` must be"],
  ];
  it.each(cases)("%s is refused, and no session is made", async (_name, options, message) => {
    await using store = createMemoryStore();
    const opening = openTurn(store, key, options as never);
    await expect(opening).rejects.toMatchObject({ code: "INPUT_INVALID", message: expect.stringContaining(message) });
    expect(await store.load(ref)).toBeNull();
  });

  it("a draft without usable content is refused with the turn it was to open", async () => {
    await using store = createMemoryStore();
    const drafts = [{ type: "message", message: { role: "user", contnt: "x" } }] as never;
    await expect(openTurn(store, key, { drafts })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect(await allRecords(store)).toEqual([]);
    await using _next = await openTurn(store, key, { whenBusy: "reject" });
  });

  it("an archived session takes no turn", async () => {
    await using store = createMemoryStore();
    await expect(openTurn(store, { key, archiveId: "1" })).rejects.toMatchObject({ code: "SESSION_ARCHIVED" });
  });
});

describe.each(["jsonl", "sqlite"])("a process that is killed in its loop, over %s", (kind) => {
  vi.setConfig({ testTimeout: 120_000 });
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "loops-"));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it("leaves what it stored, and the next turn need not wait for its lease", { tags: ["slow"] }, async () => {
    const script = fileURLToPath(new URL("./loop-process.ts", import.meta.url));
    const child = spawn(process.execPath, [script, kind, folder], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    await using store: SessionStore = openStore(kind, folder);
    await expect(openTurn(store, key)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    child.kill("SIGKILL");
    await once(child, "exit");
    await using turn = await openTurn(store, key, { whenBusy: "reject", drafts: [userMessage("Go on")] });
    expect(turn.interruptedTurn).toMatchObject({ text: "Work for ever" });
    // The call that nobody answered gets a result, so that the request is valid.
    expect(JSON.stringify(rendered(turn.records))).toContain("tool_result");
  });
});
