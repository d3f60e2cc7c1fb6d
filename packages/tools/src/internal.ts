// Functions that the packages of Throughline share. They may change in any release and are not public.
export { lineText } from "./session/history-lines.ts";
export { plainText, quotedText, roleText } from "./session/plain-text.ts";
export { spawnSession } from "./session/spawn-session.ts";
export type { MemoryHit } from "./workspace/memory-search-tool.ts";
