export { createAdkSessionService } from "./session-service.ts";
export type { AdkSessionExtras, AdkSessionServiceOptions } from "./session-service.ts";
