import type { ErrorFacts } from "./error-facts.ts";
import type { FailureCategory } from "./overflow.ts";

/** 4xx that say "not now": timeout, conflict, a dependency that failed, too early, rate limit, a caller that went away. */
const transientStatuses: ReadonlySet<number> = new Set([408, 409, 424, 425, 429, 499]);
/** 5xx that say "never": the server does not know the method, or the version of HTTP. */
const finalStatuses: ReadonlySet<number> = new Set([501, 505]);

const transientCategories: ReadonlySet<FailureCategory> = new Set([
  "cancel",
  "memory",
  "network",
  "overloaded",
  "rate_limit",
  "server",
  "timeout",
]);
const finalCategories: ReadonlySet<FailureCategory> = new Set([
  "auth",
  "config",
  "entitlement",
  "image",
  "output",
  "output_cap",
  "param",
  "template",
  "validity",
]);

/** Class names of the SDKs and types of the providers' bodies, of errors without a status, as in the middle of a stream. */
const finalCodes: ReadonlySet<string> = new Set([
  "AuthenticationError",
  "BadRequestError",
  "NotFoundError",
  "PermissionDeniedError",
  "UnprocessableEntityError",
  "authentication_error",
  "billing_error",
  "invalid_api_key",
  "invalid_prompt",
  "invalid_request_error",
  "model_not_found",
  "not_found_error",
  "permission_error",
  "request_too_large",
]);

/** Whether the same request, unchanged, may be answered later. The status decides, then the codes, then the words; what nobody knows may pass. */
export function isRetryable({ status, codes, retryAfterMs }: ErrorFacts, category: FailureCategory): boolean {
  if (status !== null && status >= 500) return !finalStatuses.has(status);
  // A spent quota is given back at a time, or after somebody paid.
  if (category === "quota") return retryAfterMs !== null;
  if (status !== null && status >= 400) return transientStatuses.has(status);
  if (codes.some((code) => finalCodes.has(code))) return false;
  if (transientCategories.has(category)) return true;
  return !finalCategories.has(category);
}
