import { type SessionRef, ThroughlineError } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";

/**
 * Returns the value after a round trip through JSON, because the store keeps JSON. @throws {ThroughlineError}
 * INPUT_INVALID
 */
export function plain(value: Fields): Fields {
  try {
    return JSON.parse(JSON.stringify(value)) as Fields;
  } catch (cause) {
    throw new ThroughlineError("INPUT_INVALID", "Events and state of an ADK session must be JSON.", {
      outcome: "not-applied",
      cause,
    });
  }
}

/** Uses the message of the ADK's database service, because callers may search for that text. */
export function exists(id: string, { key }: SessionRef): Error {
  const cause = new ThroughlineError("SESSION_EXISTS", `The session ${JSON.stringify(key)} exists.`, {
    outcome: "not-applied",
    details: { key },
  });
  return new Error(`Session with id ${id} already exists.`, { cause });
}

export function missing(id: string, { key }: SessionRef): Error {
  const cause = new ThroughlineError("SESSION_NOT_FOUND", `There is no session ${JSON.stringify(key)}.`, {
    outcome: "not-applied",
    details: { key },
  });
  return new Error(`Session ${id} not found for appendEvent`, { cause });
}

export function stale({ key }: SessionRef): ThroughlineError {
  return new ThroughlineError("SESSION_BUSY", `Another program has continued the session ${JSON.stringify(key)}.`, {
    outcome: "not-applied",
    remedy: "Get the session again, and run the turn again.",
    details: { key },
  });
}
