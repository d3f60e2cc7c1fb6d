export type { MemoryPlace, MemoryScope, MemoryServerOptions } from "./memory-scope.ts";
export { serveMemoryOverHttp } from "./serve-http.ts";
export type { HttpOptions, MemoryHttpServer } from "./serve-http.ts";
export { serveMemoryOverStdio } from "./serve-stdio.ts";
export type { StdioOptions } from "./serve-stdio.ts";
