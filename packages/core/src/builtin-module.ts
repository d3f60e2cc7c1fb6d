/** A module of the runtime, loaded on first use; undefined where the runtime has none, as in a browser. */
export function builtinModule(name: "node:crypto" | "node:zlib"): unknown {
  const runtime = (globalThis as { readonly process?: { readonly getBuiltinModule?: (id: string) => unknown } })
    .process;
  return runtime?.getBuiltinModule?.(name);
}
