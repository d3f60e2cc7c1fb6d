import type { Session } from "@throughline/session";
import type { RetryStatus } from "@throughline/session/internal";
import type { AgentSessionStatus } from "@throughline/session/whole-turn";
import type { BreakerStatus } from "@throughline/summarizer-providers/internal";
import { counted } from "../counted.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { shorten } from "../cells.ts";
import type { ReplContext } from "./repl-context.ts";

export async function showStatus({ context: { output }, conversation }: ReplContext): Promise<void> {
  const { chosen, ref, store, session } = conversation;
  const state = await store.load(ref);
  const status = session === null ? null : await session.status();
  const entry = state?.entry ?? null;
  const rows: readonly (readonly [string, string])[] = [
    ["session", `${ref.key}${state === null ? " (not made yet)" : `, id ${state.sessionId}`}`],
    ["model", `${chosen.name} (${chosen.reason})`],
    ["messages", `${state?.messageCount ?? 0}, ${counted(state?.head.lastSeq ?? 0, "record")}`],
    ["tokens", status === null ? "?" : tokensText(status)],
    ["spent", `${numberOf(entry?.inputTokens)} in, ${numberOf(entry?.outputTokens)} out`],
    ["compactions", String(numberOf(entry?.compactionCount))],
    ...(status === null ? [] : aroundRows(status)),
    ...breakerRows(conversation.breakers.status()),
    ["pending", pendingText(session, status?.retries ?? [])],
    ["store", `${store.capabilities.name}, ${store.capabilities.defaultDurability}`],
  ];
  for (const [name, text] of rows)
    await output.line({ text: name.padEnd(13), style: "cyan" }, shorten(terminalSafeLine(text), 400));
}

function tokensText({ gauge, compaction }: AgentSessionStatus): string {
  const percent = gauge.displayPercent === null ? "?" : `${gauge.displayPercent.toFixed(1)} %`;
  const { triggerTokens } = compaction;
  const left = triggerTokens === null ? null : Math.max(0, triggerTokens - gauge.tokens);
  const due = left === null ? "" : `, compacts at ${triggerTokens} (${left} left)`;
  return `~${gauge.tokens} of ${gauge.windowTokens ?? "an unknown window"}, ${percent}${due}`;
}

function aroundRows({ checkpoint, flush }: AgentSessionStatus): readonly (readonly [string, string])[] {
  const { userMessagesSince, lastId, running, failures, retryInMs } = checkpoint;
  const since = lastId === null ? "none yet" : `the last ${counted(userMessagesSince, "turn")} ago`;
  const making = running === null ? "" : `, one in the making by ${running.owner}`;
  const failed =
    failures === 0
      ? ""
      : `, ${counted(failures, "failure")}${retryInMs === null ? "" : `, next in ${minutes(retryInMs)}`}`;
  return [
    ["checkpoints", `${since}${making}${failed}`],
    ["memory flush", flush.isOn ? flushText(flush) : "off: the agent has no tool that writes files"],
  ];
}

function flushText({ phase, askedPercent, flushActioned }: AgentSessionStatus["flush"]): string {
  const asked = askedPercent === null ? phase : `${phase}, asked at ${askedPercent} %`;
  return flushActioned === null
    ? asked
    : `${asked}, ${flushActioned ? "memories were stored" : "no memories were stored"}`;
}

function breakerRows(summarizers: readonly BreakerStatus[]): readonly (readonly [string, string])[] {
  if (summarizers.length === 0) return [["breaker", "none: no model was asked for a summary"]];
  return summarizers.map((summarizer) => {
    const { name, state, failures, threshold, retryInMs, lastError } = summarizer;
    const next =
      state === "closed"
        ? "closed"
        : state === "half-open"
          ? "half-open, being tried"
          : `open, next try ${(retryInMs ?? 0) === 0 ? "with the next summary" : `in ${minutes(retryInMs ?? 0)}`}`;
    const why = lastError === null ? "" : `; last: ${lastError}`;
    return ["breaker", `${name}: ${next}, ${failures} of ${threshold} failures${why}`] as const;
  });
}

function pendingText(session: Session | null, retries: readonly RetryStatus[]): string {
  const parts = session?.interruptedTurn == null ? [] : [`turn ${session.interruptedTurn.turnId} was interrupted`];
  const open = retries.filter(({ state }) => state !== "given-up");
  const [first] = open;
  if (first !== undefined) {
    const when = first.state === "due" ? "due" : `next in ${minutes(first.retryInMs ?? 0)}`;
    parts.push(`${counted(open.length, "retry").replace("retrys", "retries")} of a summary, ${when}`);
  }
  const given = retries.length - open.length;
  if (given > 0) parts.push(`${given} given up`);
  return parts.length === 0 ? "nothing" : parts.join("; ");
}

function minutes(ms: number): string {
  return `${Math.ceil(ms / 60_000)} min`;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
