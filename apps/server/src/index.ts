export { createServer } from "./create-server.ts";
export type { Server } from "./create-server.ts";
export { defaultLimits } from "./server-options.ts";
export type { ServerLimits, ServerOptions } from "./server-options.ts";
export { createTokenStore } from "./security/token-store.ts";
export type { TokenInfo, TokenRights, TokenStore } from "./security/token-store.ts";
export { scopes } from "./security/scopes.ts";
export type { Scope } from "./security/scopes.ts";
