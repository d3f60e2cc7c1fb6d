import { ThroughlineError, type AgentToolResult } from "@throughline/core";

/** States why a tool refused a call. The message is written for the model and becomes the answer to the call. */
export class SessionToolRefusal extends Error {
  /** Names the reason for programs, which must not parse the message. */
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.name = "SessionToolRefusal";
    this.reason = reason;
  }
}

export type RefusalReason =
  | "arguments"
  | "busy"
  | "no-session"
  | "send-denied"
  | "spawn-circular"
  | "spawn-depth"
  | "spawn-children"
  | "spawn-total"
  | "too-many-hops"
  | "unknown-session";

/**
 * Turns a refusal into an answer, so that the model can react to it. Any other error is rethrown.
 * @throws {ThroughlineError} ABORTED, and what the store throws
 */
export async function refusing(signal: AbortSignal, run: () => Promise<AgentToolResult>): Promise<AgentToolResult> {
  if (signal.aborted) throw new ThroughlineError("ABORTED", "The tool was aborted.", { cause: signal.reason });
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof SessionToolRefusal)) throw error;
    return { content: error.message, isError: true, details: { reason: error.reason } };
  }
}

/** Quotes and shortens text from outside, so that it cannot pose as part of the message around it. */
export function quote(value: string): string {
  return JSON.stringify(value.slice(0, 200).toWellFormed());
}

/**
 * Checks text from a model and replaces lone surrogates.
 * @throws {SessionToolRefusal} when the text is empty or too long
 */
export function filledText(name: string, value: string, mostLength: number): string {
  if (value.trim() === "") throw new SessionToolRefusal("arguments", `"${name}" must not be empty.`);
  if (value.length > mostLength)
    throw new SessionToolRefusal(
      "arguments",
      `"${name}" is too long: ${value.length} characters, at most ${mostLength}.`,
    );
  return value.toWellFormed();
}

/**
 * Reduces a number above `most` to `most` instead of refusing it, because the model can page on.
 * @throws {SessionToolRefusal} when the number is below 1
 */
export function wholeNumber(name: string, value: number | undefined, otherwise: number, most: number): number {
  if (value === undefined) return otherwise;
  if (Number.isSafeInteger(value) && value >= 1) return Math.min(value, most);
  throw new SessionToolRefusal("arguments", `"${name}" has to be a whole number from 1 on.`);
}
