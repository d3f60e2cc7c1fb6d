// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { lineText } from "./session/history-lines.ts";
export { plainText, quotedText, roleText } from "./session/plain-text.ts";
export { spawnSession } from "./session/spawn-session.ts";
export type { MemoryHit } from "./workspace/memory-search-tool.ts";
