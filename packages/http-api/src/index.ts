export type { SessionApiLimits, SessionApiOptions } from "./api-options.ts";
