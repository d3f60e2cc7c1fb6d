import { ThroughlineError, type AgentToolResult } from "@throughline/core";

/** Why a tool did not do what it was asked, in words for the model. Its call is answered with it. */
export class SessionToolRefusal extends Error {
  /** A word for programs. */
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
 * What a refusal throws comes as the answer it is.
 * @throws {ThroughlineError} ABORTED, and what the store says
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

/** A value as text that cannot be mistaken for anything else, and is not long. */
export function quote(value: string): string {
  return JSON.stringify(value.slice(0, 200).toWellFormed());
}

/** Text that says something, with lone surrogates replaced. @throws {SessionToolRefusal} when it is empty or too long */
export function filledText(name: string, value: string, mostLength: number): string {
  if (value.trim() === "") throw new SessionToolRefusal("arguments", `"${name}" must not be empty.`);
  if (value.length > mostLength)
    throw new SessionToolRefusal(
      "arguments",
      `"${name}" is too long: ${value.length} characters, at most ${mostLength}.`,
    );
  return value.toWellFormed();
}

/** A number that counts something, at most so large, or the default. @throws {SessionToolRefusal} when it is below 1 */
export function wholeNumber(name: string, value: number | undefined, otherwise: number, most: number): number {
  if (value === undefined) return otherwise;
  if (Number.isSafeInteger(value) && value >= 1) return Math.min(value, most);
  throw new SessionToolRefusal("arguments", `"${name}" has to be a whole number from 1 on.`);
}
