import {
  type Clock,
  readWindow,
  type RecordIds,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type Summarizer,
  ThroughlineError,
} from "@throughline/core";
import { createWorkSlices, runInSlices, type Steps, tellListener } from "@throughline/core/internal";
import type { Context } from "@throughline/history";
import type { NeutralMessage } from "@throughline/history/internal";
import { contextSteps } from "@throughline/history/internal";
import type { CompactionListener } from "./compaction-event.ts";
import { settingsForWindow, type CompactionSettings } from "./compaction-settings.ts";
import { findCheckpoints, type UsableCheckpoint } from "./find-checkpoints.ts";
import { findSummary, summaryFromCheckpoint, type FindSummaryInput, type FoundSummary } from "./find-summary.ts";
import {
  planSteps,
  type CompactionInput,
  type CompactionPlan,
  type CountedContext,
  type NothingToCompact,
} from "./plan-compaction.ts";
import { prepareCompaction, type PreparedCompaction } from "./prepare-compaction.ts";

/** Counts tokens for the model of the next request. */
export interface TokenMeasure {
  /** Counts the tokens that one message adds to a request. */
  readonly countMessage: (message: NeutralMessage) => number;
  /** Counts the tokens of a text. */
  readonly countText: (text: string) => number;
}

/**
 * States why the session is compacted. `due`: the context must shrink. `asked`: a user or program requested it, so even
 * a session shorter than the usual kept part is cut to its last exchange. An object: a checkpoint becomes the summary,
 * and no model is asked.
 */
export type CompactionWay =
  | "due"
  | "asked"
  | {
      /** Holds the id of the checkpoint that becomes the summary; null for the newest one. */
      readonly checkpointId: string | null;
    };

export interface CompactionWork extends TokenMeasure {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly summarizers: readonly Summarizer[];
  readonly extractive: Summarizer | null;
  readonly settings: CompactionSettings;
  readonly windowTokens: number | null;
  /** Holds the size of the whole next request; null counts the messages alone. */
  readonly totalTokens: number | null;
  readonly targetTokens: number | null;
  readonly way: CompactionWay;
  readonly preferCheckpoint: boolean;
  readonly deadlineMs: number;
  readonly memoryFolder: string;
  readonly memorySearchTool: string | null;
  readonly signal: AbortSignal | null;
  readonly onEvent: CompactionListener | undefined;
}

export async function planOnce(work: CompactionWork): Promise<CompactionPlan | NothingToCompact> {
  return runInSlices(planFor(await readInput(work), work.way));
}

export interface PrepareListener {
  /** Is called when the plan has messages to replace. */
  onPlanned(): void;
  /** Is called before a model is asked for a summary of this plan, and again with the plan of the summary in use. */
  onPlan(plan: CompactionPlan): void;
}

export async function prepareOnce(
  work: CompactionWork,
  { onPlanned, onPlan }: PrepareListener,
): Promise<PreparedCompaction | NothingToCompact> {
  const { input, state } = await readSession(work);
  const { records } = input;
  const plan = await runInSlices(planFor(input, work.way));
  if (plan.kind === "nothing") return plan;
  onPlanned();
  const { removedMessages, keptMessages, tokensBefore } = plan;
  const found = await summaryFor({ ...work, onPlan }, input, plan);
  const { messages } = input.counted.context;
  if (found === null) {
    const reason = typeof work.way === "object" ? "no-checkpoint" : "no-gain";
    return { kind: "nothing", reason, messages: removedMessages + keptMessages, tokens: tokensBefore };
  }
  onPlan(found.plan);
  const kept = messages.slice(messages.findIndex(({ recordId }) => recordId === found.plan.firstKeptId));
  return prepareCompaction(found, kept, { state, records }, work);
}

type ReadInput = CompactionInput & Required<Pick<CompactionInput, "headId" | "counted">>;

async function readInput(work: CompactionWork): Promise<ReadInput> {
  return (await readSession(work)).input;
}

async function readSession(work: CompactionWork): Promise<{ readonly input: ReadInput; readonly state: SessionState }> {
  const { store, ref, signal } = work;
  const { state, records: read } = await readWindow(store, ref, signal === null ? {} : { signal });
  const { headId, lastSeq } = state.head;
  // Records that were appended between the two reads come after the head of the plan, so they are left out.
  const records = read.filter(({ seq }) => seq <= lastSeq);
  const input: ReadInput = {
    records,
    headId,
    counted: await countInSlices(await runInSlices(contextSteps(records, { headId })), work),
    totalTokens: work.totalTokens,
    countMessage: work.countMessage,
    settings: settingsForWindow(work.settings, work.windowTokens),
    targetTokens: work.targetTokens,
  };
  return { input, state };
}

function aborted({ reason }: AbortSignal): ThroughlineError {
  return new ThroughlineError("ABORTED", "The compaction was aborted.", { cause: reason });
}

/** Counting is most of the work of a plan. It runs in slices, so that a server can answer other requests meanwhile. */
async function countInSlices(context: Context, { countMessage, signal }: CompactionWork): Promise<CountedContext> {
  const slices = createWorkSlices();
  const tokens: number[] = [];
  for (const message of context.messages) {
    const pause = slices.next();
    if (pause !== undefined) {
      await pause;
      if (signal?.aborted === true) throw aborted(signal);
    }
    tokens.push(countMessage(message));
  }
  return { context, tokens };
}

/** Below this number of replaced tokens, a summary gains little over its heading. Then only the last exchange stays. */
const smallGainTokens = 500;

function planFor(input: ReadInput, way: CompactionWay): Steps<CompactionPlan | NothingToCompact> {
  if (typeof way === "object") return checkpointPlan(input, way.checkpointId);
  return way === "due" ? planSteps(input) : planAsked(input);
}

/**
 * Plans by the settings. A session too short for them keeps only its last exchange, because the caller requested a
 * compaction.
 */
function* planAsked(input: CompactionInput): Steps<CompactionPlan | NothingToCompact> {
  const plan = yield* planSteps(input);
  if (plan.kind === "compact" && plan.replacedTokens >= smallGainTokens) return plan;
  if (plan.kind === "nothing" && plan.reason === "too-few-messages") return plan;
  const least = yield* planSteps({ ...input, keepLeast: true });
  return least.kind === "nothing" ? plan : least;
}

function* checkpointPlan(input: ReadInput, checkpointId: string | null): Steps<CompactionPlan | NothingToCompact> {
  let nothing: NothingToCompact | null = null;
  for (const { coversToId } of yield* checkpointsFor(input, checkpointId)) {
    const plan = yield* planAsked({ ...input, coversToId, refuseShort: false });
    if (plan.kind === "compact") return plan;
    nothing ??= plan;
  }
  if (nothing !== null) return nothing;
  const { context, tokens } = input.counted;
  const all = tokens.reduce((sum, one) => sum + one, 0);
  return { kind: "nothing", reason: "no-checkpoint", messages: context.messages.length, tokens: all };
}

function* checkpointsFor(
  { records, headId }: ReadInput,
  checkpointId: string | null,
): Steps<readonly UsableCheckpoint[]> {
  const found = yield* findCheckpoints(records, headId);
  return found.filter(({ id }) => checkpointId === null || id === checkpointId);
}

async function summaryFor(
  work: CompactionWork & Pick<PrepareListener, "onPlan">,
  input: ReadInput,
  plan: CompactionPlan,
): Promise<FoundSummary | null> {
  const { ref, way } = work;
  const onFailed: FindSummaryInput["onFailed"] = (failed) =>
    tellListener(work.onEvent, { name: "compaction.rung-failed", ref, ...failed });
  const { countText } = work;
  if (typeof way === "object") {
    const checkpoints = await runInSlices(checkpointsFor(input, way.checkpointId));
    const from = (replan: FindSummaryInput["replan"]): Promise<FoundSummary | null> =>
      summaryFromCheckpoint({ checkpoints, countText, onFailed, replan });
    const atAnySize = { ...input, refuseShort: false };
    return (
      (await from((how) => runInSlices(planAsked({ ...atAnySize, ...how })))) ??
      from((how) => runInSlices(planSteps({ ...atAnySize, keepLeast: true, ...how })))
    );
  }
  const replan: FindSummaryInput["replan"] = (how) =>
    runInSlices(
      way === "asked" && "coversToId" in how ? planAsked({ ...input, ...how }) : planSteps({ ...input, ...how }),
    );
  const checkpoints = await runInSlices(checkpointsFor(input, null));
  return findSummary({ ...work, plan, replan, checkpoints, onFailed });
}
