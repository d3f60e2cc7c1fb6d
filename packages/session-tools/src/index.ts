export { createSessionTools } from "./create-session-tools.ts";
export type { SessionToolsOptions } from "./create-session-tools.ts";
export type { SessionDeliverer, SessionDelivery } from "./deliver-message.ts";
export type { SessionMessage, SessionProvenance } from "./session-message.ts";
export type { SessionRow } from "./session-row.ts";
export type { SessionVisibility } from "./visible-sessions.ts";
