import { ThroughlineError } from "./throughline-error.ts";

/**
 * Describes the holder of a turn for people: `another process (pid 19258)`. Other owners are names that a program
 * chose, so they appear in the details only.
 */
export function turnHolder(owner: string): string {
  const pid = /^pid (\d{1,10}) /.exec(owner)?.[1];
  return pid === undefined ? "another process" : `another process (pid ${pid})`;
}

export function stillAnswering(owner: string): string {
  const holder = turnHolder(owner);
  return `${holder.charAt(0).toUpperCase()}${holder.slice(1)} is still answering in this session.`;
}

/** Creates SESSION_BUSY for a session in which another turn is open. `nowMs` must be on the clock of the lease. */
export function sessionBusy(
  turn: { readonly owner: string; readonly leaseUntilMs: number },
  nowMs: number,
): ThroughlineError {
  const leaseLeftMs = turn.leaseUntilMs - nowMs;
  const seconds = Math.max(1, Math.ceil(leaseLeftMs / 1000));
  return new ThroughlineError("SESSION_BUSY", `${stillAnswering(turn.owner)} Its lock expires in ${seconds} s.`, {
    outcome: "not-applied",
    details: { ...turn, leaseLeftMs },
    remedy: `Try again in ${seconds} s.`,
  });
}
