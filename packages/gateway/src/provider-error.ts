import { type ServerResponse, STATUS_CODES } from "node:http";
import { ThroughlineError } from "@throughline/core";
import { statusOf } from "./http/status-of.ts";
import type { UpstreamApi } from "./gateway-options.ts";

const anthropicTypes: ReadonlyMap<number, string> = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
]);

/**
 * Writes an error in the format of the provider's API, so that the provider's SDK reports it like an error of the
 * provider.
 */
export function writeProviderError(
  response: ServerResponse,
  api: UpstreamApi,
  thrown: unknown,
  headers: Readonly<Record<string, string>>,
): void {
  if (response.headersSent) return void response.destroy();
  const error = ThroughlineError.isInstance(thrown)
    ? thrown
    : new ThroughlineError("INTERNAL", "The gateway failed to pass the request on.", { cause: thrown });
  const status = statusIn(error);
  const text = JSON.stringify(bodyOf(api, status, error.message));
  const retry = error.details["retryAfterMs"];
  response
    .writeHead(status, STATUS_CODES[status], {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "throughline-error": error.code,
      ...(typeof retry === "number"
        ? { "retry-after-ms": String(retry), "retry-after": String(Math.ceil(retry / 1000)) }
        : {}),
      ...(error.code === "UNAUTHENTICATED" ? { "www-authenticate": "Bearer" } : {}),
      ...headers,
    })
    .end(text);
}

function statusIn(error: ThroughlineError): number {
  const { status } = error.details;
  if (error.code === "REQUEST_TOO_LARGE" && typeof status === "number") return status;
  return statusOf(error.code);
}

function bodyOf(api: UpstreamApi, status: number, message: string): unknown {
  const type = anthropicTypes.get(status) ?? (status >= 500 ? "api_error" : "invalid_request_error");
  switch (api) {
    case "anthropic":
      return { type: "error", error: { type, message } };
    case "openai":
      return { error: { message, type: status >= 500 ? "server_error" : type, param: null, code: null } };
    case "ollama":
      return { error: message };
  }
}
