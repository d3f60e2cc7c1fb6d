// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { createMemoryData } from "./memory-data.ts";
export type { MemoryData } from "./memory-data.ts";
