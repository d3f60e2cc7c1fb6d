/**
 * Loads a module of the runtime on first use. Returns undefined when the runtime has no such module, as in a browser.
 */
export function builtinModule(name: "node:crypto" | "node:v8" | "node:zlib"): unknown {
  const runtime = (globalThis as { readonly process?: { readonly getBuiltinModule?: (id: string) => unknown } })
    .process;
  return runtime?.getBuiltinModule?.(name);
}
