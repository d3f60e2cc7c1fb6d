import type { SessionRecord } from "@throughline/core";
import { isFields, throughlineKind } from "@throughline/core/internal";

/** States when a call began, when its answer began, and when it ended, in UTC milliseconds; null where no record does. */
export interface CallTimes {
  readonly startedMs: number | null;
  readonly firstByteMs: number | null;
  readonly endedMs: number | null;
}

/** States when a call was made, and how long it took. */
export interface CallTime {
  /** States when the request was sent, in UTC milliseconds; null in records of versions that did not state it. */
  readonly startedMs: number | null;
  /** Holds the milliseconds from the request to the end of the call; null in records of versions that did not state it. */
  readonly durationMs: number | null;
  /**
   * Holds the milliseconds from the request to the first text or thinking that was streamed; null when nothing was
   * streamed, and in records of versions that did not state it.
   */
  readonly firstTextMs: number | null;
}

const unknownTime: CallTime = { startedMs: null, durationMs: null, firstTextMs: null };

/** One list of numbers is a third of the bytes of three fields, and every call adds one. */
export function timeFields({ startedMs, durationMs, firstTextMs }: CallTime): { readonly time?: readonly number[] } {
  if (startedMs === null || durationMs === null) return {};
  return { time: [startedMs, durationMs, ...(firstTextMs === null ? [] : [firstTextMs])] };
}

/** Reads what `timeFields` wrote. Any program may append such a record, so the numbers are checked. */
export function readCallTime(value: unknown): CallTime {
  if (!Array.isArray(value)) return unknownTime;
  const [startedMs, durationMs, firstTextMs] = (value as readonly unknown[]).map(timeOr);
  if (startedMs == null || durationMs == null) return unknownTime;
  return { startedMs, durationMs, firstTextMs: firstTextMs ?? null };
}

/** Returns the times of a call that a session made itself. */
export function timesOfFacts({ startedMs, durationMs, firstTextMs }: CallTime): CallTimes {
  const after = (ms: number | null): number | null => (startedMs === null || ms === null ? null : startedMs + ms);
  return { startedMs, firstByteMs: after(firstTextMs), endedMs: after(durationMs) };
}

/** Returns the times of a call through a gateway, which its exchange states; null for every other record. */
export function timesOfExchange(record: SessionRecord): CallTimes | null {
  if (throughlineKind(record) !== "exchange" || !isFields(record["data"])) return null;
  const { startedMs, firstByteMs, endedMs } = record["data"];
  return { startedMs: timeOr(startedMs), firstByteMs: timeOr(firstByteMs), endedMs: timeOr(endedMs) };
}

/** Returns the id of the exchange that the record of a call names; null for a call without one. */
export function exchangeIdOf({ data }: SessionRecord): string | null {
  const id = isFields(data) ? data["exchangeId"] : null;
  return typeof id === "string" ? id : null;
}

function timeOr(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
