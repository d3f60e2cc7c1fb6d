import type { FailureCategory } from "./overflow.ts";

const categories: Readonly<Record<number, FailureCategory>> = {
  401: "auth",
  402: "quota",
  403: "auth",
  404: "param",
  405: "param",
  406: "param",
  407: "auth",
  408: "timeout",
  409: "server",
  410: "param",
  411: "param",
  412: "param",
  414: "param",
  415: "param",
  425: "server",
  429: "rate_limit",
  431: "network",
  451: "validity",
  498: "auth",
  499: "cancel",
};

const gatewayCategories: Readonly<Record<number, FailureCategory>> = {
  504: "timeout",
  524: "timeout",
  529: "overloaded",
};

/**
 * Classifies a status without its text. Null for statuses that an overflow may have (200, 400, 413, 422, 424) and for
 * no status.
 */
export function statusCategory(status: number | null): FailureCategory | null {
  if (status === null || status < 400) return null;
  return status >= 500 ? (gatewayCategories[status] ?? "server") : (categories[status] ?? null);
}
