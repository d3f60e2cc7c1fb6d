// What a store's handle is made of. For implementers, not for users.
export { createCapabilities } from "./create-capabilities.ts";
export type { CapabilityOptions } from "./create-capabilities.ts";
export { createHandleLife } from "./handle-life.ts";
export type { HandleLife } from "./handle-life.ts";
