import { AsyncLocalStorage } from "node:async_hooks";
import type {
  Agent,
  AgentInputItem,
  Model,
  ModelProvider,
  ModelRequest,
  Runner,
  RunToolApprovalItem,
} from "@openai/agents-core";
import { assertKnownOptions, isFields, optionKinds, type Fields, type OptionTable } from "@throughline/core/internal";
import {
  loggedDecisions,
  plainJson,
  type RunPolicyOptions,
  runPolicyTable,
} from "@throughline/foreign-formats/internal";
import type { AgentsSession } from "./agents-session.ts";
import { decideState, interruptedCalls } from "./run-approvals.ts";
import { RunRecorder } from "./run-recorder.ts";
import { withSdkErrors } from "./sdk-errors.ts";

/** Configures `recordRun`. */
export interface RecordRunOptions extends RunPolicyOptions {
  /** Sets how long a run may give no sign of life before another run may start, in milliseconds. @default 60_000 */
  readonly leaseMs?: number | undefined;
  /** Names the holder of the session's lock during a run, for people. @default "openai-agents" */
  readonly owner?: string | undefined;
}

/** Runs agents like the runner, and stores each step when it happens. */
export interface RecordedRunner {
  /** Works like `runner.run` with this session. */
  readonly run: Runner["run"];
}

const table: OptionTable<RecordRunOptions> = {
  ...runPolicyTable,
  leaseMs: optionKinds.integer({ min: 1 }),
  owner: optionKinds.filledText,
};

/** A call of a model finds the recorder of its run here, because the SDK passes no run to a model. */
const current = new AsyncLocalStorage<RunRecorder>();

/**
 * Makes the runs of a runner durable step by step. The input is stored before a model is asked, each reply before a
 * tool runs, and each result when the tool has ended. A run is a turn of the session: other processes get
 * `SESSION_BUSY` meanwhile. If `sendPolicy` denies an answer, the run fails with `SEND_DENIED` before anything is
 * stored. A run whose session is denied later ends before its next model call.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function recordRun(runner: Runner, session: AgentsSession, options: RecordRunOptions = {}): RecordedRunner {
  assertKnownOptions<RecordRunOptions>("recordRun", options, table);
  const { leaseMs = 60_000, owner = "openai-agents" } = options;
  const recorded = recordingRunner(runner);
  const run = async (agent: Agent, input: unknown, given: Fields = {}): Promise<unknown> => {
    const items = inputItems(input);
    const isNew = typeof input === "string" || Array.isArray(input);
    const turn = await withSdkErrors(async () => {
      // A run that resumes after an approval belongs to its first session, so no reset is due.
      await session.beforeRun(options, isNew);
      const log = session.log();
      // The beginning of a turn ends the wait, so the decisions are read before it.
      const decisions = isNew ? [] : decideState(input as never, loggedDecisions(await log.view()));
      return log.openTurn({ owner, leaseMs, decisions });
    });
    const openCalls = isNew ? [] : await session.openCalls();
    const beforeNextCall = (): Promise<void> => session.beforeNextCall(options);
    const recorder = new RunRecorder(session, { input: items, openCalls, beforeNextCall });
    session.recorder = recorder;
    const agents = new RecordedAgents();
    const notes: Promise<void>[] = [];
    const listen = listeners(recorder, agents, (name, data) => notes.push(session.note(name, data)));
    for (const [event, listener] of listen) recorded.on(event as "agent_start", listener as () => void);
    const end = async (state: "done" | "failed", result: unknown): Promise<void> => {
      for (const [event, listener] of listen) recorded.off(event as "agent_start", listener as () => void);
      agents.restore();
      try {
        await recorder.settled();
        await Promise.all(notes);
        await keepRunState(session, result);
      } finally {
        session.recorder = null;
        await turn.close(state, interruptedCalls(interruptionsOf(result)));
      }
    };
    try {
      agents.add(agentOf(agent, input));
      const callback = (given["sessionInputCallback"] ?? recorded.config.sessionInputCallback) as Callback | undefined;
      const asked = {
        ...given,
        session,
        ...(callback === undefined ? {} : { sessionInputCallback: noting(callback, recorder) }),
      };
      const result = await current.run(recorder, () => recorded.run(agent, input as string, asked as object));
      const completed = (result as { readonly completed?: Promise<void> }).completed;
      if (given["stream"] !== true || completed === undefined) await end("done", result);
      else return withEnd(result, completed, end);
      return result;
    } catch (error) {
      await end("failed", null).catch(() => {});
      throw error;
    }
  };
  // The overloads of `run` differ only in the result of a stream, so one implementation serves all of them.
  return { run: run as unknown as Runner["run"] };
}

/** A stream ends when its last event was read and the store holds all of its items. */
function withEnd(
  result: object,
  completed: Promise<void>,
  end: (state: "done" | "failed", result: unknown) => Promise<void>,
): object {
  const ended = completed.then(
    () => end("done", result),
    async (error: unknown) => {
      await end("failed", null).catch(() => {});
      throw error;
    },
  );
  ended.catch(() => {});
  return new Proxy(result, {
    get(target, name) {
      if (name === "completed") return ended;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

type Callback = (history: AgentInputItem[], added: AgentInputItem[]) => AgentInputItem[] | Promise<AgentInputItem[]>;

/** The runner stores the items that a callback adds to the history, so the recorder must store the same items. */
function noting(callback: Callback, recorder: RunRecorder): Callback {
  return async (history, added) => {
    const before = new Set<unknown>(history);
    const texts = history.map((item) => JSON.stringify(item));
    const combined = await callback(history, added);
    const fresh = combined.filter((item) => {
      if (before.has(item)) return false;
      const at = added.includes(item) ? -1 : texts.indexOf(JSON.stringify(item));
      if (at >= 0) texts.splice(at, 1);
      return at < 0;
    });
    recorder.setInput(fresh.map((item) => plainJson(item) ?? {}));
    return combined;
  };
}

function inputItems(input: unknown): readonly Fields[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? input.map((item) => plainJson(item) ?? {}) : [];
}

/** Returns the agent that runs: a resumed run continues with the agent in which it stopped. */
function agentOf(agent: Agent, input: unknown): Agent {
  const stopped =
    isFields(input) || typeof input !== "object" || input === null
      ? undefined
      : (input as { _currentAgent?: Agent })._currentAgent;
  return stopped ?? agent;
}

function interruptionsOf(result: unknown): readonly RunToolApprovalItem[] {
  return (result as { interruptions?: readonly RunToolApprovalItem[] } | null)?.interruptions ?? [];
}

async function keepRunState(session: AgentsSession, result: unknown): Promise<void> {
  const { state } = (result ?? {}) as { state?: object };
  if (interruptionsOf(result).length > 0 && state !== undefined)
    await session.note("run-state", { state: (state as { toString(): string }).toString() });
  else if (result !== null && (await session.pendingRunState()) !== null)
    await session.note("run-state", { state: null });
}

type Note = (name: string, data: Fields) => void;

function listeners(recorder: RunRecorder, agents: RecordedAgents, note: Note): readonly (readonly [string, unknown])[] {
  return [
    ["agent_start", (_context: unknown, agent: Agent) => agents.add(agent)],
    [
      "agent_handoff",
      (_context: unknown, from: Agent, to: Agent) => {
        recorder.handedOff();
        agents.add(to);
        note("handoff", { from: from.name, to: to.name });
      },
    ],
    [
      "agent_tool_end",
      (_context: unknown, _agent: Agent, _tool: unknown, result: unknown, details: { toolCall: object }) =>
        recorder.toolEnded(details.toolCall as Fields, result),
    ],
  ];
}

/**
 * Creates a runner with the same configuration whose models are recorded. Events are passed on, so that listeners of
 * the original runner still work.
 */
function recordingRunner(runner: Runner): Runner {
  const { modelProvider, model } = runner.config;
  const provider: ModelProvider = { getModel: async (name) => recordedModel(await modelProvider.getModel(name)) };
  const Class = runner.constructor as new (config: object) => Runner;
  const config = { ...runner.config, modelProvider: provider };
  const made = new Class(
    model === undefined || typeof model === "string" ? config : { ...config, model: recordedModel(model) },
  );
  for (const event of ["agent_start", "agent_end", "agent_handoff", "agent_tool_start", "agent_tool_end"] as const)
    made.on(event as "agent_start", (...args) => void runner.emit(event as "agent_start", ...args));
  return made;
}

/** Replaces the models of agents that bring their own, and restores them after the run. */
class RecordedAgents {
  readonly #models = new Map<Agent, { readonly own: Model; readonly recorded: Model }>();

  add(agent: Agent): void {
    const { model } = agent as { model?: string | Model };
    if (typeof model !== "object" || this.#models.has(agent) || recordedModels.has(model)) return;
    const recorded = recordedModel(model);
    this.#models.set(agent, { own: model, recorded });
    agent.model = recorded;
  }

  restore(): void {
    for (const [agent, { own, recorded }] of this.#models) if (agent.model === recorded) agent.model = own;
  }
}

const recordedModels = new WeakSet<object>();

/** Wraps a model. In a recorded run, the wrapper stores the request before the call and the reply after it. */
function recordedModel(model: Model): Model {
  const recorded = new Proxy(model, {
    get(target, name) {
      if (name === "getResponse") return (request: ModelRequest) => respond(target, request);
      if (name === "getStreamedResponse") return (request: ModelRequest) => stream(target, request);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  recordedModels.add(recorded);
  return recorded;
}

async function respond(model: Model, request: ModelRequest): ReturnType<Model["getResponse"]> {
  const recorder = current.getStore();
  const isRecorded = recorder !== undefined && (await recorder.beforeCall(request));
  const response = await model.getResponse(request);
  if (isRecorded) await recorder.afterReply(response.output);
  return response;
}

async function* stream(model: Model, request: ModelRequest): ReturnType<Model["getStreamedResponse"]> {
  const recorder = current.getStore();
  const isRecorded = recorder !== undefined && (await recorder.beforeCall(request));
  for await (const event of model.getStreamedResponse(request)) {
    if (isRecorded && event.type === "response_done") await recorder.afterReply(event.response.output);
    yield event;
  }
}
