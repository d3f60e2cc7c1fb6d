export { createGateway } from "./create-gateway.ts";
export type { Gateway, GatewayOptions } from "./create-gateway.ts";
