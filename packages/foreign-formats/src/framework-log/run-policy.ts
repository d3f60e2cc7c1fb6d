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

/** Options of every adapter that asks a model: what is checked before it does. */
export interface RunPolicyOptions {
  /**
   * The policy for where the agent may answer, from `readSendPolicy` of the package `policy`. A session's own `sendPolicy`
   * decides before it. @default null: everywhere the entry does not say `deny`
   */
  readonly sendPolicy?: SendPolicy | null;
  /**
   * When a session resets by itself, as `readResetPolicy` of the package `policy` gives it. It is checked before a new message;
   * the earlier session is archived. @default null: never
   */
  readonly reset?: ResetPolicy | null;
  /** An IANA zone, for daily resets. @default the system's */
  readonly timeZone?: string;
}

const { object, orNull, text } = optionKinds;

/** The kind of value that each of these options takes. */
export const runPolicyTable: OptionTable<RunPolicyOptions> = {
  sendPolicy: orNull(object),
  reset: orNull(object),
  timeZone: text,
};

/** The session that a run is about. */
export interface RunPlace {
  /** The store of the session. */
  readonly store: SessionStore;
  /** The address of the session in the store; the session may not exist yet. */
  readonly ref: SessionRef;
  /** The time against which the rules are checked. */
  readonly clock: Clock;
  /** Source of the id of a session that is reset. */
  readonly random: RandomSource;
  /** Whether the run begins with a new message; one that continues belongs to the session that it was begun in. */
  readonly isNew: boolean;
  /** Fields of the entry that a new session keeps beside those that every reset keeps. @default none */
  readonly keeps?: readonly string[];
}

/**
 * Call before a run writes to its session. Refuses it where the agent may not answer, and resets the session when that is due.
 * @returns whether the session was reset
 * @throws {ThroughlineError} SEND_DENIED, with nothing written; REVISION_CONFLICT; what the policies and the store throw
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
 * Refuses an answer that the entry of a session or a policy denies. A session that does not exist has no entry: null.
 * @param stored what is stored of the run by now, as a sentence. @default nothing
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
 * Call before a model is asked again in a run that is under way: a person may have denied the session meanwhile.
 * @throws {ThroughlineError} SEND_DENIED; what the policies and the store throw
 */
export async function beforeNextCall(
  { store, ref }: Pick<RunPlace, "store" | "ref">,
  { sendPolicy = null }: Pick<RunPolicyOptions, "sendPolicy">,
): Promise<void> {
  assertMaySend(ref, (await store.load(ref))?.entry ?? null, sendPolicy, keptOfRun);
}

/** What the refusal of a run that is under way says of its records. */
export const keptOfRun = "The run ends here; what it did before is stored.";
