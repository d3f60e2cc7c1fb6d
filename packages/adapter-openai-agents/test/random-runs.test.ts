import { Agent, MemorySession, RunState, tool, type Session } from "@openai/agents-core";
import { assistantMessage, functionCall, modelError, ScriptedModel } from "@openai/agents-core/testing";
import { expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { testSize } from "../../../tools/test-size.ts";
import { type AgentsSession, createAgentsSession } from "../src/agents-session.ts";
import { recordRun } from "../src/record-run.ts";
import { runner } from "./scripted.ts";

type Kind = "memory" | "bare" | "recorded";
type Below = (count: number) => number;
type Steps = ConstructorParameters<typeof ScriptedModel>[0];
const parameters = { type: "object", properties: {}, required: [], additionalProperties: true } as const;

/** Numbers that look random and are the same in every run. */
function numbers(seed: number): Below {
  let state = Math.imul(seed, 2_654_435_761);
  return (count) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

/** What the model says in a run: parallel calls, answers, empty answers, failures. */
function stepsOf(below: Below, run: number): Steps {
  const steps: unknown[] = [];
  for (let step = below(3); step >= 0; step--) {
    const name = `${run}-${step}`;
    const said = below(8);
    if (said === 0) return [...steps, modelError(new Error("down"))] as Steps;
    const calls = Array.from({ length: 1 + below(3) }, (_, at) =>
      functionCall(below(3) === 0 ? "ask" : "charge", { at, step }, { callId: `c${name}-${at}` }),
    );
    steps.push(said < 5 && step > 0 ? calls : [assistantMessage(said === 7 ? "" : `said ${name}`)]);
  }
  return [...steps, [assistantMessage(`end ${run}`)]] as Steps;
}

function agentOf(steps: Steps): Agent {
  const make = (name: string, needsApproval: boolean): ReturnType<typeof tool> =>
    tool({
      name,
      description: "Pays.",
      parameters: { ...parameters, required: [] },
      strict: false,
      needsApproval,
      execute: (given) => {
        const { at, step } = given as { readonly at: number; readonly step: number };
        if (at === 1) throw new Error("broke");
        return step === 2 ? JSON.stringify({ paid: at }) : `paid ${at}`;
      },
    }) as ReturnType<typeof tool>;
  return new Agent({
    name: "cashier",
    model: new ScriptedModel(steps),
    tools: [make("charge", false), make("ask", true)],
  });
}

interface Result extends AsyncIterable<unknown> {
  readonly interruptions: readonly unknown[];
  readonly state: { toString(): string };
  readonly completed: Promise<void>;
}

/** Runs of one session; what it holds at each stop. */
async function stops(seed: number, kind: Kind): Promise<readonly string[]> {
  const below = numbers(seed);
  const store = createMemoryStore();
  const ours = (): AgentsSession => createAgentsSession({ store, sessionId: "s" });
  let session: Session = kind === "memory" ? new MemorySession({ sessionId: "s" }) : ours();
  const seen: string[] = [];
  for (let run = 0; run < 4; run++) {
    const agent = agentOf(stepsOf(below, run));
    const [stream, isReopened, isApproved, isStored] = [below(2) === 1, below(3) === 0, below(2) === 1, below(2) === 1];
    if (isReopened && kind !== "memory") session = ours();
    const by = kind === "recorded" ? recordRun(runner, session as AgentsSession) : runner;
    const go = async (input: unknown): Promise<Result> => {
      const result = (await by.run(agent, input as string, { session, stream } as never)) as unknown as Result;
      if (stream) for await (const _event of result);
      if (stream) await result.completed;
      seen.push(await textOf(session));
      return result;
    };
    try {
      let result = await go(`question ${run}`);
      while (result.interruptions.length > 0) {
        const state = (isStored ? await RunState.fromString(agent, result.state.toString()) : result.state) as RunState<
          unknown,
          Agent
        >;
        for (const item of state.getInterruptions())
          if (isApproved) state.approve(item);
          else state.reject(item);
        result = await go(state);
      }
    } catch (error) {
      // What a failed run leaves is what a recorder is for.
      seen.push(`${(error as Error).message} ${kind === "recorded" ? "" : await textOf(session)}`);
      if (kind === "recorded") return seen;
    }
  }
  return seen;
}

/** The items of a session. Results of parallel calls are stored as they come: these by the ids of their calls. */
async function textOf(session: Session): Promise<string> {
  const items = (await session.getItems()) as readonly { readonly type?: string; readonly callId?: string }[];
  const sorted = items.toSorted(() => 0);
  for (let from = 0; from < sorted.length; from++) {
    let to = from;
    while (sorted[to]?.type === "function_call_result") to += 1;
    const results = sorted.slice(from, to).toSorted((a, b) => ((a.callId ?? "") < (b.callId ?? "") ? -1 : 1));
    sorted.splice(from, results.length, ...results);
    from = Math.max(from, to - 1);
  }
  return JSON.stringify(sorted, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

it(
  "holds what MemorySession holds after each of many random runs, recorded or not",
  { tags: ["slow"], timeout: 900_000 },
  async () => {
    const cases = testSize({ short: 40, long: 2000 });
    const faults: object[] = [];
    for (let seed = 1; seed <= cases && faults.length < 3; seed++) {
      const want = await stops(seed, "memory");
      const bare = await stops(seed, "bare");
      const recorded = await stops(seed, "recorded");
      const failed = want.findIndex((one) => !one.startsWith("["));
      const before = failed < 0 ? want : want.slice(0, failed);
      const at = bare.findIndex((one, place) => one !== want[place]);
      if (at >= 0) faults.push({ seed, at, want: want[at], bare: bare[at] });
      const other = before.findIndex((one, place) => one !== recorded[place]);
      if (other >= 0) faults.push({ seed, at: other, want: before[other], recorded: recorded[other] });
    }
    expect(faults).toEqual([]);
  },
);
