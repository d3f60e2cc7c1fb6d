// Functions that the packages of Throughline share. They may change in any release and are not public.
export { createMemoryData } from "./memory-data.ts";
export type { MemoryData } from "./memory-data.ts";
