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

/** How tokens are counted. */
export interface TokenMeasure {
  /** What one message adds to a request. */
  readonly countMessage: (message: NeutralMessage) => number;
  /** The number of tokens that a text has. */
  readonly countText: (text: string) => number;
}

/**
 * Why it is compacted. `due`: it has to become smaller. `asked`: somebody wants it, and a session too short for what is
 * usually kept keeps its last exchange. A checkpoint, the newest for null: what it covers is replaced by it, no model is
 * asked.
 */
export type CompactionWay =
  | "due"
  | "asked"
  | {
      /** The id of the checkpoint that becomes the summary; null for the newest one. */
      readonly checkpointId: string | null;
    };

/** Everything one compaction needs. */
export interface CompactionWork extends TokenMeasure {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly summarizers: readonly Summarizer[];
  readonly extractive: Summarizer | null;
  readonly settings: CompactionSettings;
  readonly windowTokens: number | null;
  /** Of the whole next request; null: of the messages alone. */
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

/** What a compaction would replace. Reads, asks nobody, writes nothing. */
export async function planOnce(work: CompactionWork): Promise<CompactionPlan | NothingToCompact> {
  return runInSlices(planFor(await readInput(work), work.way));
}

/** What is called while a compaction is prepared. */
export interface PrepareListener {
  /** There is something to replace. */
  onPlanned(): void;
  /** A model is about to be asked for a summary of this plan, or its summary is in hand. */
  onPlan(plan: CompactionPlan): void;
}

/** Plans on the session as it is, and finds a summary. Writes nothing. */
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
  // Records that were appended between the two reads come after the head of the plan: they are left out.
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

/** Counting is most of the work of a plan: in slices, so that a server answers others meanwhile. */
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

/** Below this number of tokens a summary is hardly longer than its heading: then only the last exchange stays. */
const smallGainTokens = 500;

function planFor(input: ReadInput, way: CompactionWay): Steps<CompactionPlan | NothingToCompact> {
  if (typeof way === "object") return checkpointPlan(input, way.checkpointId);
  return way === "due" ? planSteps(input) : planAsked(input);
}

/** The plan by the settings. A session too short for them keeps only its last exchange, because somebody asked for it. */
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
