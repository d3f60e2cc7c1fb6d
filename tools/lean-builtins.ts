import type { Plugin } from "esbuild";

/** What programs use of `node:http`: all but the names that load the client of `fetch`. */
const httpNames =
  "Agent, ClientRequest, IncomingMessage, METHODS, OutgoingMessage, STATUS_CODES, Server, ServerResponse, createServer, get, request, validateHeaderName, validateHeaderValue";

/**
 * Node's `process`, `child_process` and `http`, as modules that cost nothing to import. Importing `node:process` reads
 * every property of `process`, and with them reports, workers and permissions (6 to 12 ms of a start); commander imports
 * `child_process` for subcommands that are programs of their own, which are not used here (4 to 6 ms). Importing
 * `node:http` reads its `WebSocket`, which loads the client of `fetch` (20 to 30 ms of the start of a server).
 */
export const leanBuiltins: Plugin = {
  name: "lean-builtins",
  setup(build) {
    build.onResolve({ filter: /^(node:)?process$/ }, () => ({ path: "process", namespace: "lean-builtin" }));
    build.onResolve({ filter: /^(node:)?child_process$/ }, ({ importer }) =>
      /[\\/]commander[\\/]/.test(importer) ? { path: "child_process", namespace: "lean-builtin" } : undefined,
    );
    build.onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === "import-statement" ? { path: "http", namespace: "lean-builtin" } : undefined,
    );
    build.onLoad({ filter: /^http$/, namespace: "lean-builtin" }, () => ({
      contents: `const http = globalThis.process.getBuiltinModule("node:http"); export default http; export const { ${httpNames} } = http;`,
    }));
    build.onLoad({ filter: /^process$/, namespace: "lean-builtin" }, () => ({
      contents: "export default globalThis.process; export const { pid, platform } = globalThis.process;",
    }));
    build.onLoad({ filter: /^child_process$/, namespace: "lean-builtin" }, () => ({
      contents:
        'export default { get spawn() { return globalThis.process.getBuiltinModule("node:child_process").spawn; } };',
    }));
  },
};
