import type { Plugin } from "esbuild";

/**
 * Node's `process` and `child_process`, as modules that cost nothing to import. Importing `node:process` reads every
 * property of `process`, and with them reports, workers and permissions (6 to 12 ms of a start); commander imports
 * `child_process` for subcommands that are programs of their own, which are not used here (4 to 6 ms).
 */
export const leanBuiltins: Plugin = {
  name: "lean-builtins",
  setup(build) {
    build.onResolve({ filter: /^(node:)?process$/ }, () => ({ path: "process", namespace: "lean-builtin" }));
    build.onResolve({ filter: /^(node:)?child_process$/ }, ({ importer }) =>
      /[\\/]commander[\\/]/.test(importer) ? { path: "child_process", namespace: "lean-builtin" } : undefined,
    );
    build.onLoad({ filter: /^process$/, namespace: "lean-builtin" }, () => ({
      contents: "export default globalThis.process; export const { pid, platform } = globalThis.process;",
    }));
    build.onLoad({ filter: /^child_process$/, namespace: "lean-builtin" }, () => ({
      contents:
        'export default { get spawn() { return globalThis.process.getBuiltinModule("node:child_process").spawn; } };',
    }));
  },
};
