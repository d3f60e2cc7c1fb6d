export { createServer } from "./create-server.ts";
export type { Server } from "./create-server.ts";
export type { ServerOptions } from "./server-options.ts";
export { isGatewayMode } from "@throughline/gateway/internal";
export type {
  GatewayMode,
  GatewaySettings as GatewayOptions,
  UpstreamApi,
  UpstreamOptions,
} from "@throughline/gateway/internal";
export type { SessionPolicyOptions } from "@throughline/session/internal";
