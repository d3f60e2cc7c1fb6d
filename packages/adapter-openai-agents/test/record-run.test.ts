import { Agent, RunState, type Runner, type Session } from "@openai/agents-core";
import { ScriptedModel } from "@openai/agents-core/testing";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { hasErrorCode } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createAgentsSession } from "../src/agents-session.ts";
import { recordRun } from "../src/record-run.ts";
import {
  answer,
  call,
  chargeTool,
  failure,
  finish,
  newSession,
  outline,
  runner,
  scriptedAgent,
  user,
} from "./scripted.ts";

/** Runs an agent as a stream or not. */
const go = (
  by: Pick<Runner, "run">,
  agent: Agent,
  input: unknown,
  session: Session,
  stream: boolean,
): Promise<unknown> => finish(by.run(agent, input as string, { session, stream } as never), stream);

describe("a recorded run of a session with a policy", () => {
  it("is refused where the entry or a rule denies an answer, before anything is stored", async () => {
    const session = newSession();
    const sendPolicy = readSendPolicy({ default: "deny" });
    const agent = scriptedAgent([[answer("hello")]]);
    const denied = await recordRun(runner, session, { sendPolicy })
      .run(agent, "Hi", { session } as never)
      .catch((error: unknown) => error);
    expect(hasErrorCode((denied as Error).cause, "SEND_DENIED")).toBe(true);
    expect((await session.log().view()).state).toBeNull();
    await go(recordRun(runner, session), agent, "Hi", session, false);
    await session.log().append(() => ({ drafts: [], entry: { sendPolicy: "deny" } }));
    await expect(recordRun(runner, session).run(agent, "Hi", { session } as never)).rejects.toThrow("SEND_DENIED");
    expect(await outline(session)).toBe("user assistant");
  });

  it("begins in a new session when the one before was idle for too long", async () => {
    let nowMs = Date.parse("2026-03-02T10:00:00Z");
    const clock = { nowMs: () => nowMs, sleep: systemClock.sleep };
    const session = newSession({ store: createMemoryStore({ clock }), clock });
    const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const agent = scriptedAgent([[answer("one")], [answer("two")], [answer("three")]]);
    const seen: string[] = [];
    for (const minutes of [0, 10, 40]) {
      nowMs += minutes * 60_000;
      await go(recordRun(runner, session, { reset }), agent, "Hi", session, false);
      seen.push(await outline(session));
    }
    expect(seen).toEqual(["user assistant", "user assistant user assistant", "user assistant"]);
  });
});

describe("recordRun", () => {
  // What a bare session keeps of the same run stands behind: the runner hands over nothing before its end.
  const rows = [
    {
      name: "success",
      steps: [[call], [answer("done")]],
      ours: "user function_call function_call_result assistant",
      bare: "user function_call function_call_result assistant",
      stream: "user function_call function_call_result assistant",
    },
    {
      name: "a failure of the second call",
      steps: [[call], failure()],
      ours: "user function_call function_call_result",
      bare: "",
      stream: "user",
    },
    { name: "a failure of the first call", steps: [failure()], ours: "user", bare: "", stream: "user" },
  ];
  it.each(rows.flatMap((row) => [false, true].map((isStream) => ({ ...row, isStream }))))(
    "keeps every step: $name, stream $isStream",
    async ({ steps, ours, bare, stream, isStream }) => {
      const plain = newSession();
      await go(runner, scriptedAgent(steps), "pay", plain, isStream);
      expect(await outline(plain)).toBe(isStream ? stream : bare);
      const session = newSession();
      await go(recordRun(runner, session), scriptedAgent(steps), "pay", session, isStream);
      expect(await outline(session)).toBe(ours);
      const next = scriptedAgent([[answer("again")]]);
      await go(recordRun(runner, session), next, "and?", session, isStream);
      expect(await outline(session)).toBe(`${ours} user assistant`);
      const records = (await session.log().view()).records;
      for (const target of historyTargets.values())
        expect(target.validate(target.render(buildContext(records)).messages, null)).toEqual([]);
    },
  );

  it.each([false, true])(
    "keeps a run that waits for an approval, and resumes it elsewhere: stream %s",
    async (stream) => {
      const store = createMemoryStore();
      const first = newSession({ store });
      let runs = 0;
      const tools = [chargeTool(true, () => (runs += 1))];
      await go(recordRun(runner, first), scriptedAgent([[call]], tools), "pay", first, stream);
      expect(await outline(first)).toBe("user function_call");
      const second = newSession({ store });
      const waiting = await second.pendingRunState();
      const agent = scriptedAgent([[answer("paid")]], tools);
      const state = await RunState.fromString(agent, waiting ?? "");
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      await go(recordRun(runner, second), agent, state, second, stream);
      expect(runs).toBe(1);
      expect(await outline(second)).toBe("user function_call function_call_result assistant");
      expect(await second.pendingRunState()).toBeNull();
    },
  );

  it("has stored the input before the model is asked, and the call before the tool runs", async () => {
    const session = newSession();
    const seen: string[] = [];
    const other = createAgentsSession({ store: createMemoryStore() });
    expect(await outline(other)).toBe("");
    const look = async (): Promise<void> => void seen.push(await outline(session));
    const model = new ScriptedModel([
      { type: "responder", respond: async () => (await look(), [call]) },
      { type: "responder", respond: async () => (await look(), [answer("done")]) },
    ]);
    const tools = [chargeTool(false, () => void look())];
    await recordRun(runner, session).run(new Agent({ name: "cashier", model, tools }), "pay", { session });
    expect(seen).toEqual(["user", "user function_call", "user function_call function_call_result"]);
  });

  it("notes handoffs, gives the hooks on, and leaves the agents as they were", async () => {
    const session = newSession();
    const [one, two] = [
      new ScriptedModel([[{ ...call, name: "transfer_to_second" }]]),
      new ScriptedModel([[answer("hi")]]),
    ];
    const second = new Agent({ name: "second", model: two });
    const first = new Agent({ name: "first", model: one, handoffs: [second] });
    const hooks: string[] = [];
    const listener = (_context: unknown, from: { name: string }, to: { name: string }): void =>
      void hooks.push(`${from.name} ${to.name}`);
    runner.on("agent_handoff", listener);
    await recordRun(runner, session).run(first, "hello", { session });
    runner.off("agent_handoff", listener);
    expect(hooks).toEqual(["first second"]);
    expect([first.model, second.model]).toEqual([one, two]);
    expect(await outline(session)).toBe("user function_call function_call_result assistant");
    const notes = (await session.log().view()).records.filter(
      ({ record }) => record["customType"] === "openai-agents.handoff",
    );
    expect(notes.map(({ record }) => record["data"])).toEqual([{ from: "first", to: "second" }]);
  });

  it("keeps what an agent says that serves as a tool out of the session", async () => {
    const session = newSession();
    const inner = new Agent({ name: "inner", model: new ScriptedModel([[answer("inside")]]) });
    const tools = [inner.asTool({ toolName: "charge", toolDescription: "asks the inner one" })];
    const asked = { ...call, arguments: '{"input":"what?"}' };
    await recordRun(runner, session).run(scriptedAgent([[asked], [answer("outside")]], tools as never), "go", {
      session,
    });
    expect(await outline(session)).toBe("user function_call function_call_result assistant");
    expect(JSON.stringify((await session.getItems()).filter(({ type }) => type === "message"))).not.toContain("inside");
  });

  it("stores a call and its result once where the model repeats ids", async () => {
    const session = newSession();
    const recorded = recordRun(runner, session);
    for (const text of ["one", "two"]) await recorded.run(scriptedAgent([[call], [answer(text)]]), text, { session });
    const turn = "user function_call function_call_result assistant";
    expect(await outline(session)).toBe(`${turn} ${turn}`);
  });

  it("keeps another process out while a run is under way", async () => {
    const store = createMemoryStore();
    const [first, second] = [newSession({ store }), newSession({ store })];
    const inside: unknown[] = [];
    const tools = [
      chargeTool(
        false,
        () =>
          void inside.push(
            recordRun(runner, second)
              .run(scriptedAgent([[answer("no")]]), "me too", { session: second })
              .catch((error: unknown) => error),
          ),
      ),
    ];
    await recordRun(runner, first).run(scriptedAgent([[call], [answer("done")]], tools), "pay", { session: first });
    const [refused] = (await Promise.all(inside)) as { readonly cause?: { readonly code?: string } }[];
    expect(refused?.cause?.code).toBe("SESSION_BUSY");
    expect(await outline(second)).toBe("user function_call function_call_result assistant");
  });

  it("has the prompt, the call and the result after a kill before the second call", { tags: ["slow"] }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-agents-"));
    try {
      const path = join(folder, "sessions.sqlite");
      const args = ["--conditions=@throughline/source", join(import.meta.dirname, "killed-run.ts"), path];
      const ended = await promisify(execFile)(process.execPath, args).catch(
        (error: unknown) => error as { signal?: string },
      );
      expect(ended).toMatchObject({ signal: "SIGKILL" });
      await using store = createSqliteStore({ path });
      const bare = createAgentsSession({ store, sessionId: "bare" });
      const session = createAgentsSession({ store, sessionId: "recorded" });
      expect(await outline(bare)).toBe("");
      expect(await outline(session)).toBe("user function_call function_call_result");
      // The lease of the killed run is short.
      const agent = scriptedAgent([[answer("You were charged once.")]]);
      await expect
        .poll(() =>
          recordRun(runner, session)
            .run(agent, "was I charged?", { session })
            .then(
              () => "ran",
              () => "busy",
            ),
        )
        .toBe("ran");
      expect(await outline(session)).toBe("user function_call function_call_result user assistant");
      expect((await session.getItems())[0]).toEqual(user("pay"));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
