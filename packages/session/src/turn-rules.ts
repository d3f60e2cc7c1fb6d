import { type Clock, ThroughlineError } from "@throughline/core";
import { loadExisting, shellWord, systemRandom } from "@throughline/core/internal";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import type { ResetPolicy, SendPolicy } from "@throughline/policy";
import { resetBeforeTurn, sendDenialOf } from "@throughline/policy/internal";
import { processOwners } from "./process-owners.ts";
import { readTurnMark } from "./turn-mark.ts";

/** Configures in which sessions turns may begin, and when a session resets before a turn. */
export interface SessionPolicyOptions {
  /** Adds send rules to those in the entry of a session. @default null */
  readonly sendPolicy?: SendPolicy | null;
  /** Sets when a session resets before a turn. @default never */
  readonly reset?: ResetPolicy;
  /** Sets the IANA time zone for the daily hours of `reset`. @default the zone of this computer */
  readonly timeZone?: string;
}

export interface TurnRules {
  /** @throws {ThroughlineError} SEND_DENIED */
  assertMaySend(state: Pick<SessionState, "ref" | "entry">): void;
  /**
   * Resets the session if the policy requires it.
   *
   * @param turnIdIn returns the id of the turn in a session, so that a repeated request does not reset the session that
   *   it began in
   * @throws {ThroughlineError} SEND_DENIED, SESSION_NOT_FOUND, REVISION_CONFLICT
   */
  prepare(store: SessionStore, ref: SessionRef, turnIdIn?: (sessionId: string) => string | null): Promise<void>;
}

export function createTurnRules({ sendPolicy = null, reset, timeZone }: SessionPolicyOptions, clock: Clock): TurnRules {
  const rules: TurnRules = {
    assertMaySend({ ref, entry }) {
      const denial = sendDenialOf({ ref, entry }, sendPolicy);
      if (denial === null) return;
      const { ruleIndex } = denial;
      const rule = ruleIndex === null ? null : (sendPolicy?.rules[ruleIndex] ?? null);
      throw new ThroughlineError(
        "SEND_DENIED",
        `The agent may not answer in ${JSON.stringify(ref.key)} (${whyOf(denial, entry.sendPolicy)}). Nothing was stored.`,
        {
          outcome: "not-applied",
          details: { ...ref, ...denial, rule },
          remedy: `\`throughline policy ${shellWord(ref.key)}\` shows what decides; \`throughline entry ${shellWord(ref.key)} set sendPolicy allow\` allows answers in this session.`,
        },
      );
    },
    async prepare(store, ref, turnIdIn = () => null) {
      rules.assertMaySend(await loadExisting(store, ref));
      const done = await resetBeforeTurn(store, ref, {
        reset: reset ?? null,
        timeZone,
        clock,
        random: systemRandom,
        isGone: ({ owner }) => processOwners().stateOf(owner) === "gone",
        async mayReset(state) {
          rules.assertMaySend(state);
          const own = turnIdIn(state.sessionId);
          return own === null || (await newestTurnId(store, ref)) !== own;
        },
      });
      if (done !== null) rules.assertMaySend(done.fresh);
    },
  };
  return rules;
}

/** Returns the turn of the newest mark. The search ends after 1,000 records, so null means that no mark is near. */
async function newestTurnId(store: SessionStore, ref: SessionRef): Promise<string | null> {
  for await (const { records } of store.read(ref, { order: "descending", limit: 1000 }))
    for (const { record } of records) {
      const mark = readTurnMark(record);
      if (mark !== null) return mark.turnId;
    }
  return null;
}

function whyOf({ source, ruleIndex, mode }: NonNullable<ReturnType<typeof sendDenialOf>>, own: unknown): string {
  if (source === "session") return `by the session's own sendPolicy, ${JSON.stringify(own)}`;
  if (source === "rule") return `by rule ${(ruleIndex ?? 0) + 1} of session.sendPolicy (${mode})`;
  return "by the default of session.sendPolicy: no rule fits";
}
