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

/** @throws {SessionToolRefusal} when it is missing, empty or too long */
export function textArgument(args: Readonly<Record<string, unknown>>, name: string, mostLength: number): string {
  const value = Object.hasOwn(args, name) ? args[name] : undefined;
  if (typeof value !== "string" || value.trim() === "")
    throw new SessionToolRefusal("arguments", `"${name}" has to be text, and not empty.`);
  if (value.length > mostLength)
    throw new SessionToolRefusal(
      "arguments",
      `"${name}" is too long: ${value.length} characters, at most ${mostLength}.`,
    );
  return value.toWellFormed();
}

/** Null when it is not there. @throws {SessionToolRefusal} */
export function optionalText(args: Readonly<Record<string, unknown>>, name: string, mostLength: number): string | null {
  const isThere = Object.hasOwn(args, name) && args[name] !== undefined && args[name] !== null;
  return isThere ? textArgument(args, name, mostLength) : null;
}

/** A whole number, at most so large. @throws {SessionToolRefusal} */
export function optionalCount(
  args: Readonly<Record<string, unknown>>,
  name: string,
  otherwise: number,
  most: number,
): number {
  const value = Object.hasOwn(args, name) ? args[name] : undefined;
  if (value === undefined || value === null) return otherwise;
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 1) return Math.min(number, most);
  throw new SessionToolRefusal("arguments", `"${name}" has to be a whole number from 1 on.`);
}

/** @throws {SessionToolRefusal} when it is there and neither true nor false */
export function optionalFlag(args: Readonly<Record<string, unknown>>, name: string): boolean {
  const value = Object.hasOwn(args, name) ? args[name] : undefined;
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  throw new SessionToolRefusal("arguments", `"${name}" has to be true or false.`);
}
