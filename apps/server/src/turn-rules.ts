import { type Clock, hasErrorCode, loadExisting, ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { resetUnchanged, shellWord, throughlineDraft } from "@throughline/core/internal";
import { systemRandom } from "@throughline/core/node";
import { type ResetPolicy, resolveSendPolicy, type SendPolicy, type SendPolicyAnswer } from "@throughline/policy";
import { neverReset } from "@throughline/policy/internal";
import { planSessionReset } from "@throughline/session";
import { processOwners, readTurnMark, resetEntry } from "@throughline/session/internal";

/** The policies for every turn that begins at a server. */
export interface SessionPolicyOptions {
  /** The rules for who may answer, beside those in the entry of a session. @default null */
  readonly sendPolicy?: SendPolicy | null;
  /** When sessions reset before a turn. @default never */
  readonly reset?: ResetPolicy;
  /** An IANA zone: daily hours of `reset` are hours of its clocks. @default the zone of this computer */
  readonly timeZone?: string;
}

/** Asked before a turn. */
export interface TurnRules {
  /** @throws {ThroughlineError} SEND_DENIED */
  assertMaySend(state: Pick<SessionState, "ref" | "entry">): void;
  /**
   * Resets the session where the policy says that it is time.
   *
   * @param turnIdIn the id that the turn has in a session: one that is opened again does not reset what it began in
   * @throws {ThroughlineError} SEND_DENIED, SESSION_NOT_FOUND, REVISION_CONFLICT
   */
  prepare(store: SessionStore, ref: SessionRef, turnIdIn?: (sessionId: string) => string | null): Promise<void>;
}

/** Everybody who decides at once sees what the first one did; more tries than that mean an entry that never rests. */
const mostTries = 64;

export function createTurnRules(
  { sendPolicy = null, reset = neverReset, timeZone = ownTimeZone() }: SessionPolicyOptions,
  clock: Clock,
): TurnRules {
  const isNever = reset === neverReset || (reset.rule.mode === "never" && hasNoOther(reset));
  const rules: TurnRules = {
    assertMaySend({ ref, entry }) {
      const answer = answerOf(sendPolicy, ref.key, entry);
      if (answer.action === "allow") return;
      const { source, ruleIndex, mode } = answer;
      const rule = ruleIndex === null ? null : (sendPolicy?.rules[ruleIndex] ?? null);
      throw new ThroughlineError(
        "SEND_DENIED",
        `The agent may not answer in ${JSON.stringify(ref.key)} (${whyOf(answer, entry.sendPolicy)}). Nothing was stored.`,
        {
          outcome: "not-applied",
          details: { ...ref, source, ruleIndex, mode, rule },
          remedy: `\`throughline policy ${shellWord(ref.key)}\` shows what decides; \`throughline entry ${shellWord(ref.key)} set sendPolicy allow\` allows answers in this session.`,
        },
      );
    },
    async prepare(store, ref, turnIdIn = () => null) {
      for (let tries = 0; tries < mostTries; tries++) {
        const state = await loadExisting(store, ref);
        rules.assertMaySend(state);
        if (isNever || ref.archiveId !== undefined) return;
        const nowMs = clock.nowMs();
        const { turn } = state.head;
        // The session is in use, whatever the time of the newest message.
        if (turn !== null && turn.leaseUntilMs > nowMs && processOwners().stateOf(turn.owner) !== "gone") return;
        const plan = await planSessionReset(store, state, { policy: reset, timeZone, nowMs });
        if (!plan.isDue || plan.reason === null) return;
        const own = turnIdIn(state.sessionId);
        if (own !== null && (await newestTurnId(store, ref)) === own) return;
        const fresh = await resetUnchanged(store, state, { clock, random: systemRandom, keep: resetEntry });
        if (fresh === null) continue;
        const facts = { reason: plan.reason, lastActivityMs: plan.lastActivityMs, dueAtMs: plan.dueAtMs ?? nowMs };
        const note = throughlineDraft("note", { kind: "session-reset", ...facts, previousSessionId: state.sessionId });
        await store.append(ref, [note]);
        return rules.assertMaySend(fresh);
      }
      throw new ThroughlineError(
        "REVISION_CONFLICT",
        `The entry of ${JSON.stringify(ref.key)} is changed without a pause.`,
        { outcome: "not-applied" },
      );
    },
  };
  return rules;
}

/** The turn whose mark is the newest; null where none is near. */
async function newestTurnId(store: SessionStore, ref: SessionRef): Promise<string | null> {
  for await (const { records } of store.read(ref, { order: "descending", limit: 1000 }))
    for (const { record } of records) {
      const mark = readTurnMark(record);
      if (mark !== null) return mark.turnId;
    }
  return null;
}

function ownTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function hasNoOther({ byType, byChannel }: ResetPolicy): boolean {
  return byChannel.size === 0 && Object.keys(byType).length === 0;
}

type Answer = Pick<SendPolicyAnswer, "action" | "source" | "ruleIndex" | "mode">;

function answerOf(policy: SendPolicy | null, key: string, entry: SessionState["entry"]): Answer {
  try {
    return resolveSendPolicy({ key, entry, policy });
  } catch (error) {
    if (!hasErrorCode(error, "KEY_INVALID")) throw error;
    // A key that another program wrote in a form of its own: no rule can be held against it.
    const own = entry.sendPolicy;
    const common = { ruleIndex: null, mode: policy?.mode ?? null };
    if (own !== undefined && own !== null)
      return { ...common, action: own === "allow" ? "allow" : "deny", source: "session" };
    return { ...common, action: policy?.default ?? "allow", source: policy === null ? "unset" : "default" };
  }
}

function whyOf({ source, ruleIndex, mode }: Answer, own: unknown): string {
  if (source === "session") return `by the session's own sendPolicy, ${JSON.stringify(own)}`;
  if (source === "rule") return `by rule ${(ruleIndex ?? 0) + 1} of session.sendPolicy (${mode})`;
  return "by the default of session.sendPolicy: no rule fits";
}
