import { hasErrorCode } from "@throughline/core";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { archivedAtMs, endSession } from "@throughline/core/entries";
import { mainSessionKey } from "@throughline/core/keys";
import { systemClock } from "@throughline/core/node";
import { planRetention } from "@throughline/policy";
import type { RetainedSession, RetentionPlan, RetentionStep } from "@throughline/policy";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { listSessions } from "@throughline/queries";
import { ageText } from "../time-text.ts";

interface PruneOptions {
  readonly olderThan?: number;
  readonly keep?: number;
  readonly maxBytes?: number;
  readonly grace?: number;
  readonly keepArchives?: boolean;
  readonly dryRun?: boolean;
  readonly allAgents?: boolean;
}

interface Retained extends RetainedSession {
  readonly ref: SessionRef;
}

type Outcome = "planned" | "done" | "skipped";

/** Archives sessions that are old or too many, and purges archives whose grace is over. Only a plan without `--yes`. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as PruneOptions;
  const { output, isYes } = context;
  const isPlan = !isYes || options.dryRun === true;
  const { olderThan, keep, maxBytes, grace, keepArchives } = options;
  if (olderThan === undefined && keep === undefined && maxBytes === undefined)
    throw usageError("prune needs a limit: --older-than, --keep or --max-bytes.");
  const store = await context.openStore(isPlan ? "read" : "write");
  const sessions = await retainedSessions(context, store, options);
  const nowMs = systemClock.nowMs();
  const plan = planRetention(
    sessions,
    {
      olderThanMs: olderThan ?? null,
      keep: keep ?? null,
      maxBytes: maxBytes ?? null,
      purgesArchives: keepArchives !== true,
      ...(grace === undefined ? {} : { graceMs: grace }),
    },
    nowMs,
  );
  const byId = new Map(sessions.map((session) => [session.sessionId, session]));
  const done: { readonly step: RetentionStep; readonly ref: SessionRef; readonly state: Outcome }[] = [];
  for (const step of plan.steps) {
    const session = byId.get(step.sessionId);
    if (session === undefined) continue;
    if (!isPlan) output.progress(`${step.action} ${step.key}`);
    const state = isPlan ? "planned" : await act(store, session, step, context.signal);
    done.push({ step, ref: session.ref, state });
  }
  await print(context, plan, done, { isPlan, nowMs });
  return 0;
}

/** Everything a limit counts. Sizes are read only where one asks for them: they take a walk through every session. */
async function retainedSessions(
  { output, scope, signal }: CommandContext,
  store: SessionStore,
  { allAgents, maxBytes }: PruneOptions,
): Promise<readonly Retained[]> {
  const query = {
    namespace: scope.namespace,
    ...(allAgents === true ? {} : { agentId: scope.agentId }),
    state: "any" as const,
    limit: 1000,
    signal,
  };
  const nowMs = systemClock.nowMs();
  const newest = new Set<string>();
  const sessions: Retained[] = [];
  for await (const state of listSessions(store, query)) {
    const { ref, sessionId, archived, updatedAtMs, entry } = state;
    // The one that `chat` would go on with. Lists come newest first.
    const isNewest = !archived && !newest.has(ref.agentId);
    if (isNewest) newest.add(ref.agentId);
    if (maxBytes !== undefined) output.progress(`measuring ${ref.key}`);
    sessions.push({
      ref,
      key: ref.key,
      sessionId,
      state: archived ? "archived" : "active",
      updatedAtMs,
      archivedAtMs: archived ? archivedAtMs(entry) : null,
      sizeBytes: maxBytes === undefined ? null : await sizeOf(store, ref, signal),
      isProtected: isNewest || isInUse(state, nowMs),
    });
  }
  output.clearProgress();
  return sessions;
}

function isInUse({ ref, archived, head }: SessionState, nowMs: number): boolean {
  if (archived) return false;
  return ref.key === mainSessionKey(ref.agentId) || (head.turn !== null && head.turn.leaseUntilMs > nowMs);
}

async function sizeOf(store: SessionStore, ref: SessionRef, signal: AbortSignal): Promise<number> {
  let sizeBytes = 0;
  for await (const { records } of store.read(ref, { payload: "head", signal }))
    for (const { bytes } of records) sizeBytes += bytes;
  return sizeBytes;
}

/** One step, unless the session was used since the plan was made. */
async function act(store: SessionStore, session: Retained, step: RetentionStep, signal: AbortSignal): Promise<Outcome> {
  signal.throwIfAborted();
  try {
    const now = await store.load(session.ref, { signal });
    const isSame = now?.sessionId === session.sessionId && now.updatedAtMs === session.updatedAtMs;
    if (now === null || !isSame || isInUse(now, systemClock.nowMs())) return "skipped";
    const purge = step.action !== "archive";
    await endSession(store, session.ref, { clock: systemClock, timeoutMs: 0, purge, signal });
    return "done";
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND", "SESSION_ARCHIVED", "SESSION_BUSY", "REVISION_CONFLICT"))
      return "skipped";
    throw error;
  }
}

async function print(
  { output }: CommandContext,
  plan: RetentionPlan,
  done: readonly { readonly step: RetentionStep; readonly ref: SessionRef; readonly state: Outcome }[],
  { isPlan, nowMs }: { readonly isPlan: boolean; readonly nowMs: number },
): Promise<void> {
  const { sessionCount, sizeBytes, freedBytes, excessBytes, spared } = plan;
  if (output.isJson) {
    const steps = done.map(({ step, ref, state }) => ({ agentId: ref.agentId, ...step, state }));
    const sums = { sessionCount, sizeBytes, freedBytes, excessBytes };
    await output.object({ kind: "prune", state: isPlan ? "planned" : "done", steps, spared, ...sums });
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
  const archive = done.filter(({ step }) => step.action === "archive").length;
  const parts = [
    `${archive} to archive, ${done.length - archive} to purge of ${counted(sessionCount, "session")}`,
    spared.length === 0 ? "" : `${spared.length} spared (in use, the main one, the newest, or within their grace)`,
    excessBytes === 0 ? "" : `${excessBytes} bytes are still too many`,
    isPlan ? "nothing was changed; --yes does it" : "",
  ];
  output.note(`${parts.filter((part) => part !== "").join("; ")}.`);
}
