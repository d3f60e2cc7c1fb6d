// Functions that the server shares with the gateway. They may change in any release and are not public.
export { gatewayModes, isGatewayMode, upstreamsOf } from "./gateway-options.ts";
export type { GatewayMode, GatewaySettings, Upstream, UpstreamApi, UpstreamOptions } from "./gateway-options.ts";
export { createGatewayHandlers } from "./gateway.ts";
export type { GatewayHandlers } from "./gateway.ts";
export { createBodyBudget } from "./http/body-budget.ts";
export type { BodyBudget, BodyShare } from "./http/body-budget.ts";
export { JsonScan } from "./http/json-scan.ts";
export { assertDeclared, continueBody, excessError, readBody } from "./http/read-body.ts";
export type { BodyLimits } from "./http/read-body.ts";
export { statusOf } from "./http/status-of.ts";
export { asksForWebSocket } from "./http/web-socket.ts";
export { uploadMs } from "./request-body.ts";
export { readSentRequest } from "./wire/read-sent.ts";
export type { SentRequest } from "./wire/read-sent.ts";
export type { RebuiltRequest } from "./wire/rebuild-request.ts";
export { readExchange, rebuildRequest } from "./wire/rebuild-request.ts";
export { within } from "./within.ts";
