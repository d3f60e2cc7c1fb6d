import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";
import { createClaudeSessionStore, createSdkConversation } from "@throughline/adapter-claude-agent-sdk";
import { appendOnce, openSession, redactRecords, sessionRef, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { aroundCalls } from "@throughline/test-kit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { key, line, prompt, reply, turn, uuidAt } from "./transcript.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-mirror-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const turnsFrom = (from: number, count: number): SessionStoreEntry[] =>
  Array.from({ length: count }, (_, at) => turn(from + at * 4, `question ${from}`)).flat();

function run(how: string, from: number, count: number): Promise<string> {
  const program = join(import.meta.dirname, "killed-mirror.ts");
  const args = ["--conditions=@throughline/source", program, join(folder, "s.db"), how, String(from), String(count)];
  return promisify(execFile)(process.execPath, args).then(
    () => "done",
    (error: unknown) => {
      const { signal, stderr } = error as { readonly signal?: string; readonly stderr?: string };
      return signal ?? stderr ?? "";
    },
  );
}

/** Counts what goes to a store. */
function counted(store: SessionStore): { readonly store: SessionStore; readonly calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const around = aroundCalls(store, ({ name, run: make }) => {
    calls.set(name, (calls.get(name) ?? 0) + 1);
    return make();
  });
  return { store: around, calls };
}

describe("a mirror whose process dies", () => {
  it.each([
    ["committed", 20],
    ["committed", 150],
    ["between", 150],
  ])(
    "%s, in a batch of %i turns, has no line twice when the batch comes again",
    { tags: ["slow"] },
    async (how, count) => {
      expect(await run(how, 1, count)).toBe("SIGKILL");
      await using store = createSqliteStore({ path: join(folder, "s.db") });
      const mirror = createClaudeSessionStore({ store });
      const before = (await mirror.load(key)) ?? [];
      expect(before).toHaveLength(how === "between" ? 250 : count * 4);
      await mirror.append(key, turnsFrom(1, count));
      expect(await mirror.load(key)).toEqual(turnsFrom(1, count));
    },
  );
});

describe("two processes", () => {
  it("mirror into one session, and lose nothing", { tags: ["slow"] }, async () => {
    const turns = testSize({ short: 12, long: 200 });
    expect(await Promise.all([run("writer", 1, turns), run("writer", 10_001, turns)])).toEqual(["done", "done"]);
    await using store = createSqliteStore({ path: join(folder, "s.db") });
    const lines = (await createClaudeSessionStore({ store }).load(key)) ?? [];
    const wanted = [...turnsFrom(1, turns), ...turnsFrom(10_001, turns)];
    expect(lines).toHaveLength(wanted.length);
    for (const part of [wanted.slice(0, turns * 4), wanted.slice(turns * 4)]) {
      const uuids = new Set(part.map(({ uuid }) => uuid));
      expect(lines.filter(({ uuid }) => uuids.has(uuid))).toEqual(part);
    }
  });

  it("make summaries of all lines, and those that may miss one are left out", async () => {
    const store = createMemoryStore();
    const [one, two] = [createClaudeSessionStore({ store }), createClaudeSessionStore({ store })];
    await one.append(key, [...turn(1, "one")]);
    await two.append(key, [{ type: "custom-title", customTitle: "Two", sessionId: key.sessionId }]);
    await one.append(key, [{ type: "tag", tag: "late", sessionId: key.sessionId }]);
    expect((await two.listSessionSummaries(key.projectKey))[0]?.data).toMatchObject({
      customTitle: "Two",
      tag: "late",
    });
    await appendOnce(store, one.sessionOf(key), [{ type: "custom", customType: "acme.note", appendMode: "side" }], {
      idempotencyKey: "note",
    });
    await one.append(key, [{ type: "tag", tag: "late", sessionId: key.sessionId }]);
    expect(await one.listSessions(key.projectKey)).toHaveLength(1);
    expect(await one.listSessionSummaries(key.projectKey)).toEqual([]);
    await one.append(key, [...turn(5, "two")]);
    const [summary] = await one.listSessionSummaries(key.projectKey);
    expect(summary?.data).toMatchObject({ customTitle: "Two", tag: "late" });
    expect((await store.load(one.sessionOf(key)))?.entry).toMatchObject({ label: "Two" });
  });
});

describe("a line that is longer than a record", () => {
  // At full size it is 40 MiB, more than one append takes.
  const { length, owls, limits } = testSize({
    short: { length: 1.5 * 1024 ** 2, owls: 1e6, limits: { recordBytes: 1024 ** 2 } },
    long: { length: 28 * 1024 ** 2, owls: 3e6, limits: {} },
  });
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "A".repeat(length) } };
  const content = [
    { type: "tool_result", tool_use_id: "toolu_9", content: [image, { type: "text", text: "🦉".repeat(owls) }] },
  ];
  const long = [
    prompt(9, "show me"),
    reply(10, [{ type: "tool_use", id: "toolu_9", name: "Read", input: {} }]),
    line(11, {
      message: { role: "user", content },
      toolUseResult: { type: "image", file: { base64: "B".repeat(1e6) } },
    }),
    prompt(12, "thanks"),
  ];

  it("is cut, comes back as it was, and goes with its redaction", { tags: ["slow"] }, async () => {
    await using store = createSqliteStore({ path: join(folder, "s.db"), create: true, limits });
    const mirror = createClaudeSessionStore({ store });
    await mirror.append(key, [...turn(1, "one"), ...turn(5, "two"), ...long]);
    await createClaudeSessionStore({ store }).append(key, [...long, prompt(13, "more")]);
    const loaded = (await mirror.load(key)) ?? [];
    expect(loaded).toHaveLength(13);
    // Compared without printing it.
    expect(JSON.stringify(loaded[10]) === JSON.stringify(long[2])).toBe(true);
    await redactRecords(store, mirror.sessionOf(key), [uuidAt(11)], { reason: "too long" });
    expect(JSON.stringify(await mirror.load(key)).length).toBeLessThan(50_000);
    let bytes = 0;
    for await (const page of store.read(mirror.sessionOf(key), { payload: "source" }))
      bytes += JSON.stringify(page).length;
    expect(bytes).toBeLessThan(100_000);
  });

  it("is completed when its process died in between", { tags: ["slow"] }, async () => {
    await using store = createSqliteStore({ path: join(folder, "s.db"), create: true, limits });
    let appends = 0;
    const failing = aroundCalls(store, ({ name, run: make }) => {
      if (name === "append" && ++appends === testSize({ short: 3, long: 4 })) throw new Error("the disk is gone");
      return make();
    });
    const broken = createClaudeSessionStore({ store: failing });
    await expect(broken.append(key, [long[0], long[1], long[2]] as SessionStoreEntry[])).rejects.toThrow(
      "the disk is gone",
    );
    const mirror = createClaudeSessionStore({ store });
    expect((await mirror.load(key))?.length).toBe(3);
    await mirror.append(key, long);
    const loaded = (await mirror.load(key)) ?? [];
    expect(loaded).toHaveLength(4);
    expect(JSON.stringify(loaded[2]) === JSON.stringify(long[2])).toBe(true);
  });
});

describe("bad input", () => {
  it("is refused and stores nothing", async () => {
    const store = createMemoryStore();
    const mirror = createClaudeSessionStore({ store });
    const circular: Record<string, unknown> = { type: "user" };
    circular["self"] = circular;
    const wrong: readonly unknown[] = [[circular], [null], ["text"], {}, [{ type: "a", value: 1n }]];
    for (const entries of wrong)
      await expect(mirror.append(key, entries as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(mirror.append(key, [...turn(1, "one"), circular] as never)).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
    await expect(mirror.append({ ...key, subpath: "" }, [])).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(mirror.load({ projectKey: 5, sessionId: "s" } as never)).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
    expect(await mirror.load(key)).toBeNull();
  });

  it("of two recorders of one conversation refuses the second", async () => {
    const store = createMemoryStore();
    const ref = sessionRef({ key: "agent:main:main" });
    await openSession(store, ref, { entry: { sdkSessionId: "sdk-1" } });
    const mirror = createClaudeSessionStore({ store, refOf: () => ref });
    await expect(mirror.append(key, [prompt(1, "one")])).rejects.toMatchObject({ code: "INPUT_INVALID" });
    const own = createClaudeSessionStore({ store });
    await own.append(key, [prompt(1, "one")]);
    const conversation = createSdkConversation({ store, ref: own.sessionOf(key), query: () => expect.unreachable() });
    await expect(conversation.send("Hi")).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  it("of a session in which another's turn is open is SESSION_BUSY, and is not stored", async () => {
    const store = createMemoryStore();
    const mirror = createClaudeSessionStore({ store });
    await mirror.append(key, [prompt(1, "one")]);
    const turnOptions = {
      action: "open",
      turnId: "t",
      owner: "another",
      leaseUntilMs: Date.now() + 60_000,
      fence: 1,
    } as const;
    await appendOnce(store, mirror.sessionOf(key), [], { idempotencyKey: "open", turn: turnOptions });
    await expect(mirror.append(key, [prompt(2, "two")])).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await appendOnce(store, mirror.sessionOf(key), [], {
      idempotencyKey: "close",
      turn: { action: "close", fence: 1 },
    });
    await mirror.append(key, [prompt(2, "two")]);
    expect(await mirror.load(key)).toHaveLength(2);
  });

  it("of a store that fails once is stored by the next try of the SDK, once", async () => {
    const inner = createMemoryStore();
    let isDown = true;
    const store = aroundCalls(inner, ({ name, run: make }) => {
      const given = make();
      if (name !== "append" || !isDown) return given;
      isDown = false;
      return (given as Promise<unknown>).then(() => Promise.reject(new Error("the network is gone")));
    });
    const mirror = createClaudeSessionStore({ store });
    await expect(mirror.append(key, [...turn(1, "one")])).rejects.toThrow("the network is gone");
    await mirror.append(key, [...turn(1, "one")]);
    expect(await mirror.load(key)).toEqual(turn(1, "one"));
  });
});

describe("in eager mode", () => {
  it(
    "parallel sub-agents cost one commit a line",
    { timeout: testSize({ short: 180_000, long: 1_800_000 }) },
    async () => {
      const [agents, lines] = testSize({ short: [5, 60], long: [20, 5000] } as const);
      await using inner = createSqliteStore({ path: join(folder, "s.db"), create: true });
      const { store, calls } = counted(inner);
      const mirror = createClaudeSessionStore({ store });
      const keys = Array.from({ length: agents }, (_, at) => ({ ...key, subpath: `subagents/agent-${at}` }));
      await Promise.all(
        keys.map(async (one) => {
          for (const entry of turnsFrom(1, lines / 4)) await mirror.append(one, [entry]);
        }),
      );
      expect(calls.get("append")).toBe(agents * lines);
      // Each session is begun by one more.
      expect(calls.get("save")).toBe(agents);
      expect(calls.get("read")).toBeUndefined();
      // Each line is held against the entry of the main session, which a person may have denied.
      expect(calls.get("load")).toBe(agents * (2 + lines));
      for (const one of keys.slice(0, 2)) expect(await mirror.load(one)).toHaveLength(lines);
    },
  );
});
