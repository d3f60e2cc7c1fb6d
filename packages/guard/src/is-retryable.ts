import type { ErrorFacts } from "./error-facts.ts";
import type { FailureCategory } from "./overflow.ts";

/**
 * These 4xx statuses are transient: timeout, conflict, failed dependency, too early, rate limit, and a client that
 * closed the connection.
 */
const transientStatuses: ReadonlySet<number> = new Set([408, 409, 424, 425, 429, 499]);
/** These 5xx statuses are permanent: the server does not support the method or the HTTP version. */
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

/** Errors in the middle of a stream carry no status. SDK class names and body types decide for them. */
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

/**
 * States whether the same request, unchanged, may succeed later. The status decides, then the codes, then the category.
 * An unknown error counts as retryable.
 */
export function isRetryable({ status, codes, retryAfterMs }: ErrorFacts, category: FailureCategory): boolean {
  if (status !== null && status >= 500) return !finalStatuses.has(status);
  // A spent quota returns at a stated time, or only after a payment.
  if (category === "quota") return retryAfterMs !== null;
  if (status !== null && status >= 400) return transientStatuses.has(status);
  if (codes.some((code) => finalCodes.has(code))) return false;
  if (transientCategories.has(category)) return true;
  return !finalCategories.has(category);
}
