export { createSessionApi } from "./create-session-api.ts";
export type { SessionApi } from "./create-session-api.ts";
export type { SessionApiLimits, SessionApiOptions } from "./api-options.ts";
export type { ApiCaller } from "./security/api-caller.ts";
