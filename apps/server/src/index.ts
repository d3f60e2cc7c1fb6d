export { createServer } from "./create-server.ts";
export type { Server } from "./create-server.ts";
export { defaultLimits } from "./server-options.ts";
export type { ServerLimits, ServerOptions } from "./server-options.ts";
export { createAuditLog } from "./security/audit-log.ts";
export type { AuditEntry, AuditEvent, AuditLog } from "./security/audit-log.ts";
export { createTokenStore, isValidToken } from "./security/token-store.ts";
export type { TokenInfo, TokenRights, TokenStore } from "./security/token-store.ts";
export { isGatewayMode } from "@throughline/gateway/internal";
export { isScope, scopes } from "./security/scopes.ts";
export type { Scope } from "./security/scopes.ts";
export type {
  GatewayMode,
  GatewaySettings as GatewayOptions,
  UpstreamApi,
  UpstreamOptions,
} from "@throughline/gateway/internal";
export type { SessionPolicyOptions } from "@throughline/session/internal";
export type { SummaryOptions } from "./summaries.ts";
