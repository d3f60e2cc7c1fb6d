import { ThroughlineError } from "@throughline/core";
import { classifyOverflow } from "./classify-overflow.ts";
import type { FailureCategory } from "./overflow.ts";
import { readProperty } from "./read-property.ts";

/**
 * Limits the quotation of a provider's error, which may contain the whole page of a proxy. The cause keeps the full
 * text.
 */
const maxQuotedLength = 2000;

interface Wording {
  readonly what: string;
  readonly remedy: string;
}

const rejected = "The provider rejected the request";
const atItsLimit = "Try again later.";

const wordings: Readonly<Partial<Record<FailureCategory, Wording>>> = {
  auth: { what: rejected, remedy: "Check the API key, and what it may use." },
  entitlement: { what: rejected, remedy: "Check what the account may use at the provider." },
  quota: { what: rejected, remedy: "Check the plan and the credit of the account at the provider." },
  rate_limit: { what: "The provider limits the rate of requests", remedy: atItsLimit },
  overloaded: { what: "The provider is overloaded", remedy: atItsLimit },
  network: { what: "The provider could not be reached", remedy: "Check the network and the base URL, then try again." },
  timeout: { what: "The provider did not answer in time", remedy: "Try again, or raise the timeout of the model." },
  server: { what: "The provider failed", remedy: atItsLimit },
  memory: { what: "The provider failed", remedy: "Free memory at the server, or use a smaller model." },
};
const otherWhenRejected: Wording = {
  what: rejected,
  remedy: "Check the name of the model, the base URL, and what the message names.",
};
const otherWhenFailed: Wording = { what: "The model call failed", remedy: atItsLimit };

/**
 * Converts the failure of a model call into MODEL_FAILED, with the error of the provider's SDK as its cause.
 * `retryable` is false when the provider rejected the request: credentials, permissions, an unknown model, an invalid
 * request, a spent quota. It is true for rate limits, overload, timeouts, failed connections and faults of the server.
 *
 * @param error the error that the call threw; a `ThroughlineError` is returned unchanged
 * @returns an error whose details hold `category`, and `retryAfterMs` when the provider stated a wait
 * @example
 * try {
 *   reply = await client.messages.create(request);
 * } catch (error) {
 *   if (!modelFailure(error).retryable) throw error;
 * }
 */
export function modelFailure(error: unknown): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const { category, isRetryable, retryAfterMs } = classifyOverflow(error);
  const known = category === "context_overflow" ? undefined : wordings[category];
  const { what, remedy } = known ?? (isRetryable ? otherWhenFailed : otherWhenRejected);
  return new ThroughlineError("MODEL_FAILED", `${what}: ${quoted(error)}`, {
    cause: error,
    details: { category, retryAfterMs },
    remedy: isRetryable && retryAfterMs !== null ? `Try again in ${Math.ceil(retryAfterMs / 1000)} s.` : remedy,
    retryable: isRetryable,
  });
}

function quoted(error: unknown): string {
  const text = withCause(error);
  if (text.length <= maxQuotedLength) return text;
  return `${text.slice(0, maxQuotedLength).toWellFormed()}… (${text.length} characters)`;
}

/** The SDKs only report "Connection error." The innermost cause names the connection and the reason. */
function withCause(error: unknown): string {
  const text = textOf(error);
  let inner: unknown = error;
  for (let depth = 0; depth < 5; depth++) {
    const cause = readProperty(inner, "cause");
    if (typeof cause !== "object" || cause === null) break;
    inner = cause;
  }
  const reason = inner === error ? "" : textOf(inner);
  return reason === "" || text.includes(reason) ? text : `${text} (${reason})`;
}

/** A thrown value may be anything, and its conversion to text may throw as well. */
function textOf(error: unknown): string {
  // Node's error for several failed connections has a code and an empty message.
  const message = [readProperty(error, "message"), readProperty(error, "code")].find(
    (one) => typeof one === "string" && one !== "",
  );
  if (typeof message === "string") return message;
  try {
    return String(error);
  } catch {
    return "something was thrown that has no text";
  }
}
