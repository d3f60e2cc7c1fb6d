export { createAdkSessionService } from "./session-service.ts";
export type { AdkSessionServiceOptions } from "./session-service.ts";
