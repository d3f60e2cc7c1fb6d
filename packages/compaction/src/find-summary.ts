import { type Clock, hasErrorCode, type Summarizer, ThroughlineError } from "@throughline/core";
import { type NeutralMessage, renderTextPieces } from "@throughline/history/internal";
import { type AuditProblem, auditSummary, createWorkSlices, Deadline, untilAborted } from "@throughline/core/internal";
import type { SummarySource, SummaryUsage } from "./compaction-details.ts";
import { ladderSteps, stepFrom, type LadderState, type LadderStep } from "./compaction-steps.ts";
import type { UsableCheckpoint } from "./find-checkpoints.ts";
import type { CompactionPlan, NothingToCompact } from "./plan-compaction.ts";

/** Describes a source that gave no summary. */
export interface FailedRung {
  /** States which source it was. */
  readonly rung: SummarySource;
  /** Holds the index of the summarizer in the chain; null for sources without a chain. */
  readonly index: number | null;
  /** Holds the problem that the audit reported; null when the source failed with an error or had no summary. */
  readonly problem: AuditProblem | null;
  /** Holds the error that the source threw; null when its summary failed the audit. */
  readonly cause: unknown;
}

export interface FindSummaryInput {
  readonly plan: CompactionPlan;
  /**
   * Plans again with another cut. An emergency keeps more messages. A checkpoint keeps every message that it does not
   * cover.
   */
  readonly replan: (
    how: { readonly mode: "emergency" } | { readonly coversToId: string },
  ) => Promise<CompactionPlan | NothingToCompact>;
  readonly checkpoints: readonly UsableCheckpoint[];
  readonly preferCheckpoint: boolean;
  readonly summarizers: readonly Summarizer[];
  readonly extractive: Summarizer | null;
  readonly countText: (text: string) => number;
  readonly clock: Clock;
  /** Limits the time of all models together. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | null;
  readonly onFailed: (failed: FailedRung) => void;
  /** Is called before the models are asked, with the plan that they summarize. */
  readonly onPlan: (plan: CompactionPlan) => void;
}

export interface FoundSummary {
  readonly kind: "found";
  readonly plan: CompactionPlan;
  readonly source: SummarySource;
  readonly provider: string | null;
  readonly prose: string;
  readonly checkpointId: string | null;
  /** Is null when no provider stated any usage. */
  readonly usage: SummaryUsage | null;
}

/**
 * Tries the sources of a summary in order until one passes the audit. A checkpoint that covers half of the context
 * comes first. The summarizers, an older checkpoint, the extractive summarizer and a stub follow. Returns null when not
 * even the stub is shorter than the part it replaces.
 * @throws {ThroughlineError} ABORTED
 */
export async function findSummary(input: FindSummaryInput): Promise<FoundSummary | null> {
  let state: LadderState = "checkpoint";
  let outcome: FoundSummary | LadderStep = "failed";
  while (Object.hasOwn(rungs, state)) {
    outcome = await rungs[state as Rung](input);
    state = stepFrom(ladderSteps, state, typeof outcome === "string" ? outcome : "passed");
  }
  if (state === "stopped") {
    throw new ThroughlineError("ABORTED", "The compaction was aborted.", { cause: input.signal?.reason });
  }
  return typeof outcome === "string" ? null : outcome;
}

type Rung = Exclude<LadderState, "written" | "no-gain" | "stopped">;

const rungs: Readonly<
  Record<Rung, (input: FindSummaryInput) => Promise<FoundSummary | LadderStep> | FoundSummary | LadderStep>
> = {
  checkpoint: (input) =>
    input.preferCheckpoint ? fromCheckpoint(input, "checkpoint", input.plan.tokensBefore * freshShare) : "failed",
  models: fromModels,
  "older-checkpoint": (input) => fromCheckpoint(input, "older-checkpoint", 0),
  extractive: fromExtractive,
  stub: fromStub,
};

function isAborted(signal: AbortSignal | null): boolean {
  return signal?.aborted === true;
}

/** A smaller checkpoint would lose too much context, so the models come before it. */
const freshShare = 0.5;

type CheckpointInput = Pick<FindSummaryInput, "replan" | "checkpoints" | "countText" | "onFailed">;

async function fromCheckpoint(
  input: CheckpointInput,
  rung: "checkpoint" | "older-checkpoint",
  least: number,
): Promise<FoundSummary | "failed"> {
  for (const checkpoint of input.checkpoints) {
    if (checkpoint.tokensAtCheckpoint < least) continue;
    const plan = await input.replan({ coversToId: checkpoint.coversToId });
    if (plan.kind === "nothing") continue;
    const { previous } = plan;
    // A checkpoint that was written without the previous summary must not replace it, so both texts are joined.
    const isChained = previous === null || checkpoint.previousSummaryId === previous.id;
    const prose = isChained ? checkpoint.prose : `${previous.prose}\n\n${checkpoint.prose}`;
    const problem = auditSummary(prose, { replacedTokens: plan.replacedTokens, countText: input.countText });
    if (problem === null) {
      return { kind: "found", plan, source: rung, provider: null, prose, checkpointId: checkpoint.id, usage: null };
    }
    input.onFailed({ rung, index: null, problem, cause: null });
  }
  return "failed";
}

/**
 * Uses the newest of these checkpoints that passes the audit, at any size. The caller chose a checkpoint explicitly.
 */
export async function summaryFromCheckpoint(input: CheckpointInput): Promise<FoundSummary | null> {
  const found = await fromCheckpoint(input, "checkpoint", 0);
  return found === "failed" ? null : found;
}

async function fromModels(input: FindSummaryInput): Promise<FoundSummary | LadderStep> {
  if (isAborted(input.signal)) return "aborted";
  if (input.summarizers.length > 0) input.onPlan(input.plan);
  await using deadline = new Deadline(input.clock, input.deadlineMs, input.signal);
  for (const [index, summarizer] of input.summarizers.entries()) {
    const outcome = await ask(input, input.plan, summarizer, "model", index, deadline.signal);
    if (typeof outcome !== "string") return outcome;
    if (isAborted(input.signal)) return "aborted";
    if (deadline.isOver) return "timed-out";
  }
  return "failed";
}

async function fromExtractive(input: FindSummaryInput): Promise<FoundSummary | LadderStep> {
  if (input.extractive === null) return "failed";
  if (isAborted(input.signal)) return "aborted";
  const plan = await emergencyPlan(input);
  const outcome = await ask(input, plan, input.extractive, "extractive", null, input.signal);
  if (typeof outcome !== "string") return outcome;
  return isAborted(input.signal) ? "aborted" : "failed";
}

/**
 * Keeps more messages, because no model wrote the summary. The first cut stays when the larger kept part gains nothing.
 */
async function emergencyPlan(input: FindSummaryInput): Promise<CompactionPlan> {
  const plan = await input.replan({ mode: "emergency" });
  return plan.kind === "nothing" ? input.plan : plan;
}

async function ask(
  input: FindSummaryInput,
  plan: CompactionPlan,
  summarizer: Summarizer,
  rung: "model" | "extractive",
  index: number | null,
  signal: AbortSignal | null,
): Promise<FoundSummary | "failed"> {
  const maxOutputTokens = plan.settings.maxSummaryTokens;
  const limits = { replacedTokens: plan.replacedTokens, maxOutputTokens, countText: input.countText };
  const text = await conversationText(plan.removed, plan.settings.toolResultChars);
  const audit = (summary: string): AuditProblem | null => auditSummary(summary, limits);
  try {
    const reply = await untilAborted(
      summarizer.summarize({
        text,
        previousSummary: plan.previous?.prose ?? null,
        maxOutputTokens,
        audit,
        ...(signal === null ? {} : { signal }),
      }),
      signal,
    );
    const problem = audit(reply.summary);
    if (problem === null) {
      const { summary: prose, source: provider, usage } = reply;
      return {
        kind: "found",
        plan,
        source: rung,
        provider,
        prose: prose.trim().toWellFormed(),
        checkpointId: null,
        usage,
      };
    }
    input.onFailed({ rung, index, problem, cause: null });
  } catch (cause) {
    // Every error of a summarizer moves on to the next source. An abort by the caller is not reported as its failure.
    if (!isAborted(input.signal) || !hasErrorCode(cause, "ABORTED")) {
      input.onFailed({ rung, index, problem: null, cause });
    }
  }
  return "failed";
}

async function fromStub(input: FindSummaryInput): Promise<FoundSummary | "failed"> {
  for (const plan of new Set([await emergencyPlan(input), input.plan])) {
    const prose = stubText(plan);
    // A stub carries no content of the messages, so it must free at least half of their tokens.
    const problem = auditSummary(prose, { replacedTokens: plan.replacedTokens / 2, countText: input.countText });
    if (problem === null) {
      return { kind: "found", plan, source: "stub", provider: null, prose, checkpointId: null, usage: null };
    }
    input.onFailed({ rung: "stub", index: null, problem, cause: null });
  }
  return "failed";
}

/** Writes how many messages are missing. The previous summary stays, so that its content is not lost. */
function stubText({ removed, removedMessages, previous }: CompactionPlan): string {
  const users = removed.filter(({ role }) => role === "user").length;
  const times = removed.flatMap(({ tsMs }) => (tsMs === null ? [] : [tsMs]));
  const from = times[0] === undefined ? "" : ` from ${new Date(times[0]).toISOString()} on`;
  const note = `(${removedMessages} messages${from}, ${users} of them the user's, are no longer shown and not summarized yet. The session keeps them.)`;
  return previous === null ? note : `${previous.prose}\n\n${note}`;
}

export async function conversationText(messages: readonly NeutralMessage[], toolResultChars: number): Promise<string> {
  const context = {
    headId: null,
    messages,
    recordsInContext: messages.length,
    model: null,
    thinkingLevel: "off",
    summaryId: null,
    omitted: [],
    findings: [],
  };
  const slices = createWorkSlices();
  const pieces: string[] = [];
  for (const piece of renderTextPieces(context, { toolResultChars })) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    pieces.push(piece);
  }
  return pieces.join("");
}
