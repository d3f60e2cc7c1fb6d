import type { ListQuery, SessionStore } from "@throughline/core";
import { listSessions, systemClock } from "@throughline/core/internal";
import { applyRetention, planRetention } from "@throughline/policy";
import { readRetained } from "@throughline/policy/internal";
import type { AppliedStep, RetentionPlan, RetentionStep, StoredSession } from "@throughline/policy/internal";
import { forgetTypedLines } from "../chat/typed-lines.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { noteSpooledCalls } from "../server/spooled-calls.ts";
import { ageText } from "../time-text.ts";
import { deleteUnusedFiles, findUnusedFiles, type UnusedFile } from "../unused-files.ts";

interface PruneOptions {
  readonly olderThan?: number;
  readonly keep?: number;
  readonly maxBytes?: number;
  readonly grace?: number;
  readonly keepArchives?: boolean;
  readonly dryRun?: boolean;
  readonly allAgents?: boolean;
  readonly unusedFiles?: number;
}

/** Prints only the plan without `--yes`, because pruning removes sessions. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as PruneOptions;
  const { output, isYes, signal } = context;
  const isPlan = !isYes || options.dryRun === true;
  const { olderThan, keep, maxBytes, grace, keepArchives, unusedFiles } = options;
  if ([olderThan, keep, maxBytes, unusedFiles].every((limit) => limit === undefined))
    throw usageError("prune needs a limit: --older-than, --keep, --max-bytes or --unused-files.");
  const store = await context.openStore(isPlan ? "read" : "write");
  const nowMs = systemClock.nowMs();
  const sessions = await readRetained(store, listSessions(store, queryOf(context, options)), {
    // Only a byte limit needs the sizes, and measuring is slow.
    isMeasured: maxBytes !== undefined,
    nowMs,
    onMeasure: (key) => output.progress(`measuring ${key}`),
    signal,
  });
  output.clearProgress();
  const plan = planRetention(
    sessions,
    {
      olderThanMs: olderThan ?? null,
      keep: keep ?? null,
      maxBytes: maxBytes ?? null,
      // Old files alone are no reason to purge an archive.
      purgesArchives: keepArchives !== true && [olderThan, keep, maxBytes].some((limit) => limit !== undefined),
      ...(grace === undefined ? {} : { graceMs: grace }),
    },
    nowMs,
  );
  const steps = isPlan ? planned(plan, sessions) : await carriedOut(context, store, sessions, plan);
  const files =
    unusedFiles === undefined ? [] : await prunedFiles(context, store, sessions, { unusedFiles, isPlan, nowMs });
  await print(context, plan, steps, { isPlan, nowMs, files });
  await forgetPurged(context, steps);
  return 0;
}

function queryOf({ scope, signal }: CommandContext, { allAgents }: PruneOptions): ListQuery {
  const agent = allAgents === true ? {} : { agentId: scope.agentId };
  return { namespace: scope.namespace, ...agent, state: "any", limit: 1000, signal };
}

/** Returns the unused files. Call it after the steps, because they may purge the last session of a file. */
async function prunedFiles(
  context: CommandContext,
  store: SessionStore,
  sessions: readonly StoredSession[],
  { unusedFiles, isPlan, nowMs }: { readonly unusedFiles: number; readonly isPlan: boolean; readonly nowMs: number },
): Promise<readonly UnusedFile[]> {
  const agentIds = [context.scope.agentId, ...sessions.map(({ ref }) => ref.agentId)];
  const found = await findUnusedFiles(context, store, agentIds, { olderThanMs: unusedFiles, nowMs });
  return isPlan ? found : deleteUnusedFiles(context, store, found);
}

type ShownStep = Omit<AppliedStep, "state"> & { readonly state: AppliedStep["state"] | "planned" };

function planned(plan: RetentionPlan, sessions: readonly StoredSession[]): readonly ShownStep[] {
  const refs = new Map(sessions.map(({ sessionId, ref }) => [sessionId, ref]));
  return plan.steps.flatMap((step) => {
    const ref = refs.get(step.sessionId);
    return ref === undefined ? [] : [{ step, ref, state: "planned" as const }];
  });
}

function carriedOut(
  { output, signal }: CommandContext,
  store: SessionStore,
  sessions: readonly StoredSession[],
  plan: RetentionPlan,
): Promise<readonly ShownStep[]> {
  const onStep = ({ action, key }: RetentionStep): void => output.progress(`${action} ${key}`);
  return Array.fromAsync(applyRetention(store, sessions, plan, { clock: systemClock, onStep, signal }));
}

/** Deletes typed lines of the agents with purged sessions, because they may repeat the purged content. */
async function forgetPurged(context: CommandContext, steps: readonly ShownStep[]): Promise<void> {
  const purged = steps.filter(({ step, state }) => step.action === "purge" && state === "done");
  for (const agentId of new Set(purged.map(({ ref }) => ref.agentId))) forgetTypedLines(context, agentId);
  if (purged.length > 0) await noteSpooledCalls(context);
}

async function print(
  { output }: CommandContext,
  plan: RetentionPlan,
  done: readonly ShownStep[],
  { isPlan, nowMs, files }: { readonly isPlan: boolean; readonly nowMs: number; readonly files: readonly UnusedFile[] },
): Promise<void> {
  const { sessionCount, sizeBytes, freedBytes, excessBytes, spared } = plan;
  if (output.isJson) {
    const steps = done.map(({ step, ref, state }) => ({ agentId: ref.agentId, ...step, state }));
    const sums = { sessionCount, sizeBytes, freedBytes, excessBytes };
    await output.object({ kind: "prune", state: isPlan ? "planned" : "done", steps, spared, ...sums, files });
    return;
  }
  await output.table(
    [
      { title: "ACTION" },
      { title: "REASON" },
      { title: "LAST", align: "right" },
      { title: "KEY" },
      { title: "ID", rank: 2 },
      { title: "STATE", rank: 1 },
    ],
    done.map(({ step, state }) => [
      step.action,
      step.reason,
      ageText(step.updatedAtMs, nowMs),
      step.key,
      step.sessionId,
      state,
    ]),
  );
  await output.flush();
  for (const { fileId, bytes, storedAtMs, state } of files)
    output.note(`file ${fileId}, ${bytes} bytes, put ${ageText(storedAtMs, nowMs)} ago: ${state}`);
  const archive = done.filter(({ step }) => step.action === "archive").length;
  const parts = [
    `${archive} to archive, ${done.length - archive} to purge of ${counted(sessionCount, "session")}`,
    spared.length === 0 ? "" : `${spared.length} spared (in use, the main one, the newest, or within their grace)`,
    excessBytes === 0 ? "" : `${excessBytes} bytes are still too many`,
    ...filesText(files),
    isPlan ? "nothing was changed; --yes does it" : "",
  ];
  output.note(`${parts.filter((part) => part !== "").join("; ")}.`);
}

function filesText(files: readonly UnusedFile[]): readonly string[] {
  if (files.length === 0) return [];
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return [`${counted(files.length, "unused file")} with ${bytes} bytes to delete`];
}
