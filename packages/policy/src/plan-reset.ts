import { parseSessionKey } from "@throughline/core";
import { lastDailyBoundaryMs, nextDailyBoundaryMs } from "./daily-boundary.ts";
import type { ResetPolicy, ResetRule, ResetType } from "./reset-policy.ts";
import { assertKnownOptions, optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** States the policy, the session and the time by which `planReset` decides. */
export interface ResetQuestion {
  /** States the rules in the form that `readResetPolicy` returns. */
  readonly policy: ResetPolicy;
  /** States the session's key, such as `agent:main:telegram:group:42`. */
  readonly key: string;
  /** Names the channel whose rule applies, such as `telegram`; case does not matter. @default from the key */
  readonly channel?: string | null | undefined;
  /** States the type of the conversation; a thread of a group is a `thread`. @default from the key */
  readonly type?: ResetType | undefined;
  /**
   * States the time of the last message, in UTC milliseconds. Heartbeats and other work of the system do not count as
   * activity.
   */
  readonly lastActivityMs: number;
  /** States the time for which the plan is computed, in UTC milliseconds. */
  readonly nowMs: number;
  /** States the IANA time zone in which daily hours are read. */
  readonly timeZone: string;
}

/** States what a reset policy requires for one session. A plan changes nothing. */
export interface ResetPlan {
  /** States whether the session should reset now. */
  readonly isDue: boolean;
  /** Names the limit that was reached; null while no reset is due. */
  readonly reason: "daily" | "idle" | null;
  /** States when the reset is due without further activity, in UTC milliseconds. Null means never. */
  readonly dueAtMs: number | null;
  /** Names the part of the policy that decided. */
  readonly source: "channel" | "type" | "general";
  /** Holds the rule that decided. */
  readonly rule: ResetRule;
}

const { number, object, oneOf, orNull, required, text } = optionKinds;

const resetPolicy: OptionKind = {
  expected: "a policy as readResetPolicy gives it",
  accepts: (value) =>
    object.accepts(value) && object.accepts((value as { rule?: unknown }).rule) && "byChannel" in (value as object),
};

export const resetQuestionTable: OptionTable<ResetQuestion> = {
  policy: required(resetPolicy),
  key: required(text),
  channel: orNull(text),
  type: oneOf(["direct", "group", "channel", "thread"]),
  lastActivityMs: required(number()),
  nowMs: required(number()),
  timeZone: required(text),
};

/**
 * Decides whether a session should reset, and when.
 * @throws {ThroughlineError} INPUT_INVALID for a question with another field or type, KEY_INVALID
 */
export function planReset(question: ResetQuestion): ResetPlan {
  assertKnownOptions<ResetQuestion>("planReset", question, resetQuestionTable, "question");
  const { rule, source } = ruleFor(question);
  const { lastActivityMs, nowMs, timeZone } = question;
  const due: { readonly reason: "daily" | "idle"; readonly atMs: number }[] = [];
  if (rule.mode === "daily") {
    const boundaryMs = lastDailyBoundaryMs(nowMs, rule.atHour, timeZone);
    const isStale = lastActivityMs < boundaryMs;
    // The due time is the first boundary after the activity, not the newest: two days of silence cause one reset.
    const atMs = isStale ? nextDailyBoundaryMs(lastActivityMs, rule.atHour, timeZone) : null;
    due.push({ reason: "daily", atMs: atMs ?? nextDailyBoundaryMs(nowMs, rule.atHour, timeZone) });
  }
  if (rule.mode !== "never" && rule.idleMinutes !== null) {
    due.push({ reason: "idle", atMs: lastActivityMs + rule.idleMinutes * 60_000 });
  }
  const first = due.toSorted((one, other) => one.atMs - other.atMs)[0];
  if (first === undefined) return { isDue: false, reason: null, dueAtMs: null, source, rule };
  const isDue = first.reason === "idle" ? nowMs > first.atMs : nowMs >= first.atMs;
  return { isDue, reason: isDue ? first.reason : null, dueAtMs: first.atMs, source, rule };
}

/** The first rule that exists decides alone: the channel's rule, else the type's, else the general rule. */
function ruleFor({ policy, key, channel, type }: ResetQuestion): {
  readonly rule: ResetRule;
  readonly source: ResetPlan["source"];
} {
  const parsed = parseSessionKey(key);
  const rest = parsed.form === "agent" ? parsed.rest : null;
  const ofKey = rest?.kind === "peer" ? rest.channel : parsed.form === "short" ? parsed.channel : null;
  const byChannel = policy.byChannel.get((channel ?? ofKey ?? "").toLowerCase());
  if (byChannel !== undefined) return { rule: byChannel, source: "channel" };
  const isThread = parsed.form === "agent" && parsed.suffix !== null;
  const kind = type ?? (isThread ? "thread" : rest?.kind === "peer" ? rest.peerKind : "direct");
  const byType = policy.byType[kind];
  return byType === undefined ? { rule: policy.rule, source: "general" } : { rule: byType, source: "type" };
}
