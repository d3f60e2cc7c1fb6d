import { ThroughlineError } from "./throughline-error.ts";

/**
 * Ids become file names, so they are checked before anything touches the file system. The rule is the one
 * OpenClaw's readers apply; Windows device names and dots-only names are refused on top.
 */
const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const agentIdPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const deviceNamePattern = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i;

function isSafeFileName(text: string): boolean {
  return !deviceNamePattern.test(text) && !text.endsWith(".") && !text.includes("..");
}

export function isSessionId(text: string): boolean {
  return sessionIdPattern.test(text) && isSafeFileName(text);
}

export function isAgentId(text: string): boolean {
  return agentIdPattern.test(text) && isSafeFileName(text);
}

/** @throws {ThroughlineError} SESSION_ID_INVALID */
/** Checks the form of a session id. @throws {ThroughlineError} SESSION_ID_INVALID */
export function assertSessionId(text: string): void {
  if (typeof text !== "string" || !isSessionId(text)) {
    throw new ThroughlineError("SESSION_ID_INVALID", `The session id ${quote(text)} is not valid.`, {
      outcome: "not-applied",
    });
  }
}

/** @throws {ThroughlineError} AGENT_ID_INVALID */
/** Checks the form of an agent id. @throws {ThroughlineError} AGENT_ID_INVALID */
export function assertAgentId(text: string): void {
  if (typeof text !== "string" || !isAgentId(text)) {
    throw new ThroughlineError("AGENT_ID_INVALID", `The agent id ${quote(text)} is not valid.`, {
      outcome: "not-applied",
    });
  }
}

/** @throws {ThroughlineError} NAMESPACE_INVALID */
/** Checks the form of a namespace; the empty one is the default. @throws {ThroughlineError} NAMESPACE_INVALID */
export function assertNamespace(text: string): void {
  if (typeof text !== "string" || (text !== "" && !isSessionId(text))) {
    throw new ThroughlineError("NAMESPACE_INVALID", `The namespace ${quote(text)} is not valid.`, {
      outcome: "not-applied",
    });
  }
}

/** Quotes a value of unknown origin for a message: JSON, so that control characters are escaped, and short. */
export function quote(value: unknown): string {
  const text = jsonText(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Undefined for what JSON cannot hold: a message about a wrong value must not fail over it. */
function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
