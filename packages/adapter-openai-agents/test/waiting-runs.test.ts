import { type Agent, RunState } from "@openai/agents-core";
import { functionCall } from "@openai/agents-core/testing";
import { describe, expect, it } from "vitest";
import { sessionRow, systemClock } from "@throughline/core/internal";
import { decideApproval, listApprovals } from "@throughline/session/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { recordRun } from "../src/record-run.ts";
import { answer, call, chargeTool, finish, newSession, outline, runner, scriptedAgent } from "./scripted.ts";

const clock = systemClock;
const otherCall = functionCall("charge", {}, { callId: "c2", id: "fc_2" });

/** A run that has stopped for approvals, and what other programs do over the same store. */
async function waitingRun(stream: boolean) {
  const store = createMemoryStore();
  const charged: string[] = [];
  const tools = [chargeTool(true, () => charged.push("charged"))];
  /** Another process for each run. */
  const session = () => newSession({ store });
  const agent = (steps: Parameters<typeof scriptedAgent>[0]): Agent => scriptedAgent(steps, tools);
  const begun = session();
  await finish(
    recordRun(runner, begun).run(agent([[call, otherCall]]), "pay", { session: begun, stream } as never),
    stream,
  );
  const { ref } = begun.log();
  const pending = async (): Promise<readonly string[]> =>
    (await listApprovals(store, ref, clock)).map(({ callId, tool }) => `${callId} ${tool}`);
  const listed = async (): Promise<number | undefined> => {
    const state = await store.load(ref);
    return state === null ? undefined : sessionRow(state).pendingApprovals;
  };
  const decide = (callId: string, given: true | { readonly refuse: string }): Promise<unknown> =>
    decideApproval(store, ref, { callId, answer: given, clock });
  /** Resumes the run in another process; `change` is what the program decides itself. */
  const resume = async (change: (state: RunState<unknown, Agent>) => void = () => {}): Promise<unknown> => {
    const resumed = session();
    const one = agent([[answer("Done.")]]);
    const state = await RunState.fromString(one, (await resumed.pendingRunState()) ?? "");
    change(state as never);
    return finish(recordRun(runner, resumed).run(one, state as never, { session: resumed, stream } as never), stream);
  };
  return { charged, decide, listed, pending, resume, session };
}

describe.each([false, true])("a recorded run that stops for approvals, as a stream: %s", (stream) => {
  it("waits, and carries out what was decided elsewhere", async () => {
    const { charged, decide, listed, pending, resume, session } = await waitingRun(stream);
    expect(await pending()).toEqual(["c1 charge", "c2 charge"]);
    expect(await listed()).toBe(2);
    await decide("c1", true);
    await decide("c2", { refuse: "Too dear." });
    expect(await listed()).toBe(0);
    expect(await resume()).not.toBeInstanceOf(Error);
    expect(charged).toEqual(["charged"]);
    expect(await outline(session())).toBe(
      "user function_call function_call function_call_result function_call_result assistant",
    );
    expect(JSON.stringify(await session().getItems())).toContain("Too dear.");
    expect(await pending()).toEqual([]);
  });

  it("keeps waiting for the rest when a part is decided", async () => {
    const { charged, decide, listed, pending, resume } = await waitingRun(stream);
    await decide("c1", true);
    await resume();
    expect(charged).toEqual(["charged"]);
    expect(await pending()).toEqual(["c2 charge"]);
    expect(await listed()).toBe(1);
    await decide("c2", true);
    await resume();
    expect(charged).toEqual(["charged", "charged"]);
    expect(await pending()).toEqual([]);
  });

  it("stores what the program decides itself before the tool runs", async () => {
    const { charged, pending, resume, session } = await waitingRun(stream);
    await resume((state) => state.getInterruptions().forEach((item) => state.approve(item)));
    expect(charged).toHaveLength(2);
    expect(await pending()).toEqual([]);
    const { records } = await session().log().view();
    const decisions = records.flatMap(({ record }) => {
      const { decision } = (record["data"] ?? {}) as { readonly decision?: string };
      return decision === undefined ? [] : [decision];
    });
    expect(decisions).toEqual(["wait", "wait", "once", "once"]);
  });

  it("refuses another decision of the program than the first one", async () => {
    const { charged, decide, pending, resume } = await waitingRun(stream);
    await decide("c1", { refuse: "No." });
    const refused = await resume((state) => state.getInterruptions().forEach((item) => state.approve(item)));
    expect(refused).toMatchObject({ cause: { code: "APPROVAL_DECIDED", details: { callId: "c1" } } });
    expect(charged).toEqual([]);
    expect(await pending()).toEqual(["c2 charge"]);
  });
});
