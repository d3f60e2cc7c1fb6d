import { ThroughlineError } from "@throughline/core";
import { withRemedy } from "../error-report.ts";
import { loopback } from "./server-access.ts";

/**
 * Replaces the remedy of a server error with one for the command line. `name` is the command that starts this program.
 */
export function explainServerError(error: unknown, url: string, name: string): unknown {
  if (!ThroughlineError.isInstance(error)) return error;
  const { code, details } = error;
  if (code === "UNAUTHENTICATED")
    return withRemedy(
      error,
      `Make a token where the store of the server is (${name} token create NAME), and set THROUGHLINE_TOKEN to what it prints.`,
    );
  if (code === "FORBIDDEN") {
    const needs = typeof details["needs"] === "string" ? details["needs"] : null;
    const scopes = needs === null || needs === "namespace" ? "" : ` with --scopes …,${needs}`;
    const remedy = `Set THROUGHLINE_TOKEN to a token that may do this: ${name} token create NAME${scopes}, where the store of the server is.`;
    return withRemedy(error, remedy);
  }
  if (code !== "STORE_UNREACHABLE") return error;
  const { hostname, port, protocol } = new URL(url);
  const isHere = loopback.has(hostname) && protocol === "http:";
  const start = `${name} serve${port === "" || port === "4788" ? "" : ` --port ${port}`}`;
  return withRemedy(
    error,
    isHere
      ? `Start the server again: ${start}. A write whose outcome is unknown can be repeated with its --idempotency-key.`
      : "Check the address, and that the server and the proxy in front of it run. Then run the command again.",
  );
}
