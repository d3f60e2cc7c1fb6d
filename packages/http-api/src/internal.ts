// Exports for Throughline's own programs, tools and tests. They may change in any release and are not part of the
// public interface.
export type { SourceFiles } from "./api-context.ts";
export { closeParts, loadTokens, refreshTokens, stopServing } from "./api-life.ts";
export { defaultLimits } from "./api-options.ts";
export type { SessionApiOptions } from "./api-options.ts";
export { createApiParts, createServices } from "./api-parts.ts";
export type { ApiServices } from "./api-parts.ts";
export { apiDocument } from "./api-routes.ts";
export { openSessionApi } from "./create-session-api.ts";
export { answerRequest } from "./http/answer-request.ts";
export type { ApiParts, Neighbor } from "./http/answer-request.ts";
export { nodeExchange } from "./http/node-exchange.ts";
export { problemOf } from "./http/problem.ts";
export { referencePage } from "./http/reference-page.ts";
export { createFindings } from "./operations/findings.ts";
export { createAuditLog } from "./security/audit-log.ts";
export { assertHost, assertOrigin } from "./security/host-check.ts";
export { createLocalToken } from "./security/local-token.ts";
export { createRateLimits } from "./security/rate-limits.ts";
export { isScope, scopes } from "./security/scopes.ts";
export type { Scope } from "./security/scopes.ts";
export { createTokenStore, isValidToken } from "./security/token-store.ts";
export type { TokenInfo, TokenRights, TokenStore } from "./security/token-store.ts";
