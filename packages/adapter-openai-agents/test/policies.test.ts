import { Agent, RunContext, RunState, tool } from "@openai/agents-core";
import { ScriptedModel } from "@openai/agents-core/testing";
import { describe, expect, it } from "vitest";
import { hasErrorCode } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import type { AgentsSession } from "../src/agents-session.ts";
import { recordRun } from "../src/record-run.ts";
import { answer, call, chargeTool, finish, newSession, outline, runner, scriptedAgent } from "./scripted.ts";

const deny = (session: AgentsSession): Promise<unknown> =>
  session.log().append(() => ({ drafts: [], entry: { sendPolicy: "deny" } }));
const idle = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });

function movingClock(): {
  readonly nowMs: () => number;
  readonly sleep: typeof systemClock.sleep;
  add: (minutes: number) => void;
} {
  let nowMs = Date.parse("2026-03-02T10:00:00Z");
  return { nowMs: () => nowMs, sleep: systemClock.sleep, add: (minutes) => void (nowMs += minutes * 60_000) };
}

describe("a session that is denied while a recorded run is under way", () => {
  it.each([false, true])("is asked no further, and keeps what ran: stream %s", async (stream) => {
    const session = newSession();
    const model = new ScriptedModel([[call], [answer("done")]]);
    const charge = tool({
      name: "charge",
      description: "Charges the card.",
      parameters: { type: "object", properties: {}, required: [], additionalProperties: true },
      strict: false,
      execute: async () => {
        await deny(session);
        return "charged 5 EUR";
      },
    }) as ReturnType<typeof tool>;
    const agent = new Agent({ name: "cashier", model, tools: [charge] });
    const run = recordRun(runner, session).run(agent, "pay", { session, stream } as never);
    const error = (await finish(run, stream)) as Error;
    expect(hasErrorCode(error.cause, "SEND_DENIED")).toBe(true);
    expect((error.cause as Error).message).toContain("what it did before is stored");
    expect(await outline(session)).toBe("user function_call function_call_result");
  });
});

describe("a session with a policy that no recorder runs", () => {
  it.each([false, true])("refuses a run before the model is asked, and stays readable: stream %s", async (stream) => {
    const session = newSession({ sendPolicy: readSendPolicy({ default: "deny" }) });
    const agent = scriptedAgent([[answer("one")], [answer("two")]]);
    const denied = (await finish(runner.run(agent, "Hi", { session, stream } as never), stream)) as Error;
    expect(hasErrorCode(denied.cause, "SEND_DENIED")).toBe(true);
    expect([await outline(session), (await session.log().view()).state]).toEqual(["", null]);
    await session.log().append(() => ({ drafts: [], entry: { sendPolicy: "allow" } }));
    await finish(runner.run(agent, "Hi", { session, stream } as never), stream);
    await deny(session);
    const again = (await finish(runner.run(agent, "Hi", { session, stream } as never), stream)) as Error;
    expect(hasErrorCode(again.cause, "SEND_DENIED")).toBe(true);
    expect(await outline(session)).toBe("user assistant");
  });

  it("checks each run of programs that give all of them one context", async () => {
    const session = newSession();
    const agent = scriptedAgent([[answer("one")], [answer("two")]]);
    const context = new RunContext({});
    await runner.run(agent, "Hi", { session, context } as never);
    await deny(session);
    await expect(runner.run(agent, "Hi", { session, context } as never)).rejects.toThrow("SEND_DENIED");
  });

  it("begins in a new session when the one before was idle for too long, and not when somebody looks at it", async () => {
    const clock = movingClock();
    const session = newSession({ store: createMemoryStore({ clock }), clock, reset: idle });
    const agent = scriptedAgent([[answer("one")], [answer("two")], [answer("three")]]);
    const seen: string[] = [];
    for (const minutes of [0, 10, 40]) {
      clock.add(minutes);
      seen.push(await outline(session));
      await runner.run(agent, "Hi", { session } as never);
    }
    expect([...seen, await outline(session)]).toEqual([
      "",
      "user assistant",
      "user assistant user assistant",
      "user assistant",
    ]);
  });

  it("keeps a run that waited for an approval in its session", async () => {
    const clock = movingClock();
    const session = newSession({ store: createMemoryStore({ clock }), clock, reset: idle });
    const agent = scriptedAgent([[call], [answer("done")]], [chargeTool(true)]);
    const waiting = await runner.run(agent, "pay", { session } as never);
    clock.add(40);
    const state = await RunState.fromString(agent, waiting.state.toString());
    for (const item of state.getInterruptions()) state.approve(item);
    await runner.run(agent, state as never, { session } as never);
    expect(await outline(session)).toBe("user function_call function_call_result assistant");
  });

  it("gives its policies to recordRun, whose own come first", async () => {
    const session = newSession({ sendPolicy: readSendPolicy({ default: "deny" }) });
    const agent = scriptedAgent([[answer("one")]]);
    await expect(recordRun(runner, session).run(agent, "Hi", { session } as never)).rejects.toThrow("SEND_DENIED");
    await recordRun(runner, session, { sendPolicy: null }).run(agent, "Hi", { session } as never);
    expect(await outline(session)).toBe("user assistant");
  });
});
