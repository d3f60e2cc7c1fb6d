import {
  type Clock,
  type RandomSource,
  type SessionEntry,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { ResetPolicy, SendPolicy } from "@throughline/policy";
import { resetBeforeTurn, sendDenialOf } from "@throughline/policy/internal";

/** Holds the options of every adapter that calls a model: the checks that run before the call. */
export interface RunPolicyOptions {
  /**
   * Sets the policy that decides whether the agent may answer, as `readSendPolicy` of the package `policy` returns it.
   * The session's `sendPolicy` field takes precedence.
   * @default null: the agent may answer unless the entry says `deny`
   */
  readonly sendPolicy?: SendPolicy | null | undefined;
  /**
   * Sets when a session resets by itself, as `readResetPolicy` of the package `policy` returns it. The adapter checks
   * the policy before a new message. The earlier session is archived.
   * @default null: never
   */
  readonly reset?: ResetPolicy | null | undefined;
  /** Names the IANA time zone for daily resets. @default the system's zone */
  readonly timeZone?: string | undefined;
}

const { object, orNull, text } = optionKinds;

/** States the kind of value that each of these options takes, for `assertKnownOptions`. */
export const runPolicyTable: OptionTable<RunPolicyOptions> = {
  sendPolicy: orNull(object),
  reset: orNull(object),
  timeZone: text,
};

/** Describes the session and the ports of one run. */
export interface RunPlace {
  /** Sets the store that holds the session. */
  readonly store: SessionStore;
  /** Sets the address of the session in the store. The session may not exist yet. */
  readonly ref: SessionRef;
  /** Supplies the time that the policies are checked against. */
  readonly clock: Clock;
  /** Supplies the randomness for the id of the session that follows a reset. */
  readonly random: RandomSource;
  /**
   * States whether the run begins with a new message. A run that continues never resets the session that it began in.
   */
  readonly isNew: boolean;
  /** Lists entry fields that a new session keeps, beside the fields that every reset keeps. @default none */
  readonly keeps?: readonly string[];
}

/**
 * Checks the policies before a run writes to its session. Refuses the run when the agent may not answer, and resets the
 * session when a reset is due.
 * @returns whether the session was reset
 * @throws {ThroughlineError} SEND_DENIED, with nothing written; REVISION_CONFLICT; any error of the policies or the
 * store
 */
export async function beforeRun(
  { store, ref, isNew, ...place }: RunPlace,
  options: RunPolicyOptions,
): Promise<boolean> {
  const { sendPolicy = null, reset = null, timeZone } = options;
  const mayReset = ({ entry }: { readonly entry: SessionEntry | null }): boolean => {
    assertMaySend(ref, entry, sendPolicy);
    return isNew;
  };
  mayReset({ entry: (await store.load(ref))?.entry ?? null });
  return isNew && (await resetBeforeTurn(store, ref, { reset, timeZone, ...place, mayReset })) !== null;
}

/**
 * Refuses an answer that the session's entry or a policy denies. Pass null as the entry of a session that does not
 * exist.
 * @param stored a sentence that says which records of the run are stored. @default nothing was stored
 * @throws {ThroughlineError} SEND_DENIED; INPUT_INVALID for a policy of another shape
 */
export function assertMaySend(
  ref: SessionRef,
  entry: SessionEntry | null,
  policy: SendPolicy | null,
  stored: string | null = null,
): void {
  const denial = sendDenialOf({ ref, entry }, policy);
  if (denial === null) return;
  const why = denial.source === "session" ? "the session's own `sendPolicy`" : "the send policy";
  throw new ThroughlineError(
    "SEND_DENIED",
    `The agent may not answer in ${JSON.stringify(ref.key)}: ${why} denies it. ${stored ?? "Nothing was stored."}`,
    { ...(stored === null ? { outcome: "not-applied" } : {}), details: { ...ref, ...denial } },
  );
}

/**
 * Checks the policies before a run calls the model again, because a person may have denied the session since the last
 * call.
 * @throws {ThroughlineError} SEND_DENIED; any error of the policies or the store
 */
export async function beforeNextCall(
  { store, ref }: Pick<RunPlace, "store" | "ref">,
  { sendPolicy = null }: Pick<RunPolicyOptions, "sendPolicy">,
): Promise<void> {
  assertMaySend(ref, (await store.load(ref))?.entry ?? null, sendPolicy, keptOfRun);
}

/** Holds the sentence that a refusal of a running run gives about its records. */
export const keptOfRun = "The run ends here; what it did before is stored.";
