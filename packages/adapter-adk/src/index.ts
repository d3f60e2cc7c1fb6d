export { createAdkSessionService } from "./session-service.ts";
export type { AdkSessionServiceOptions, AdkSessionExtras } from "./session-service.ts";
