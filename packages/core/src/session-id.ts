import { ThroughlineError } from "./throughline-error.ts";

/**
 * Ids become file names, so they are checked before any access to the file system. OpenClaw's readers apply the same
 * rule. Windows device names, a dot at the end and two dots in a row are refused too.
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

/** Checks the form of a session id. @throws {ThroughlineError} SESSION_ID_INVALID */
export function assertSessionId(text: string): void {
  if (typeof text !== "string" || !isSessionId(text)) {
    throw new ThroughlineError("SESSION_ID_INVALID", `The session id ${quote(text)} is not valid.`, {
      outcome: "not-applied",
    });
  }
}

/** Checks the form of an agent id. @throws {ThroughlineError} AGENT_ID_INVALID */
export function assertAgentId(text: string): void {
  if (typeof text !== "string" || !isAgentId(text)) {
    throw new ThroughlineError("AGENT_ID_INVALID", `The agent id ${quote(text)} is not valid.`, {
      outcome: "not-applied",
    });
  }
}

/**
 * Checks the form of a namespace; the empty text is the default namespace.
 * @throws {ThroughlineError} NAMESPACE_INVALID
 */
export function assertNamespace(text: string): void {
  if (typeof text !== "string" || (text !== "" && !isSessionId(text))) {
    throw new ThroughlineError("NAMESPACE_INVALID", `The namespace ${quote(text)} is not valid.`, {
      outcome: "not-applied",
    });
  }
}

/**
 * Quotes a value of unknown origin for a message. JSON escapes control characters, and the text is cut at 200
 * characters.
 */
export function quote(value: unknown): string {
  const text = jsonText(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Returns undefined for a value that JSON cannot hold, because a message about a wrong value must not fail over it. */
function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
