import type { IncomingHttpHeaders } from "node:http";
import { textOf } from "../json-value.ts";
import type { Violation } from "../violation.ts";
import type { WireResponse } from "../wire-adapter.ts";

const usual: Readonly<Record<number, Omit<Violation, "status">>> = {
  400: { type: "invalid_request_error", message: "Invalid request." },
  401: { type: "invalid_request_error", message: "Incorrect API key provided.", code: "invalid_api_key" },
  403: { type: "invalid_request_error", message: "You are not allowed to use this model.", code: "unsupported_model" },
  404: { type: "invalid_request_error", message: "Not found", code: "not_found" },
  413: { type: "invalid_request_error", message: "Request entity too large", code: "request_too_large" },
  429: {
    type: "tokens",
    message:
      "Rate limit reached on tokens per minute (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.",
    code: "rate_limit_exceeded",
  },
  500: { type: "server_error", message: "The server had an error while processing your request. Sorry about that!" },
  503: { type: "server_error", message: "That model is currently overloaded with other requests." },
};

export function usualOpenAiFailure(status: number): Violation {
  return { status, ...(usual[status] ?? { type: "server_error", message: `Status ${status}` }) };
}

/** Both endpoints use this error object. */
export function openAiError({
  message,
  type,
  param = null,
  code = null,
}: Violation): Readonly<Record<string, unknown>> {
  return { message, type, param, code };
}

export function openAiFailure(violation: Violation, requestId: string): WireResponse {
  return {
    status: violation.status,
    headers: { "x-request-id": requestId },
    body: JSON.stringify({ error: openAiError(violation) }),
  };
}

/** Checks the Bearer credentials. Without a configured key any key passes, but one must be present. */
export function authenticateOpenAi(headers: IncomingHttpHeaders, apiKey: string | undefined): Violation | null {
  const given = /^Bearer (.+)$/.exec(textOf(headers.authorization))?.[1];
  if (given === undefined)
    return {
      status: 401,
      type: "invalid_request_error",
      message:
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
    };
  if (apiKey === undefined || given === apiKey) return null;
  return {
    status: 401,
    type: "invalid_request_error",
    message: `Incorrect API key provided: ${given.slice(0, 3)}***. You can find your API key at https://platform.openai.com/account/api-keys.`,
    code: "invalid_api_key",
  };
}
