// Exports for Throughline's own tools and tests. They may change in any release and are not part of the public
// interface.
export { apiDocument, apiRoutes } from "./api-routes.ts";
export { assertHost, assertOrigin } from "./security/host-check.ts";
export { createRateLimits } from "./security/rate-limits.ts";
export { statusOf } from "@throughline/gateway/internal";
export { referencePage } from "./http/reference-page.ts";
