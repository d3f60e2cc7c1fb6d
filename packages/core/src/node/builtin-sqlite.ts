import type * as nodeSqlite from "node:sqlite";

let loaded: typeof nodeSqlite | null = null;

/**
 * Node's own SQLite, loaded on first use; undefined where this Node has none. Node 22 says on stderr that it is
 * experimental: that one line is left out, every other warning passes.
 */
export function builtinSqlite(): typeof nodeSqlite | undefined {
  if (loaded !== null) return loaded;
  const emitWarning = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: readonly unknown[]) => {
    const text = typeof warning === "string" ? warning : warning.message;
    if (!text.startsWith("SQLite is an experimental feature")) Reflect.apply(emitWarning, process, [warning, ...rest]);
  }) as typeof process.emitWarning;
  try {
    const found = process.getBuiltinModule("node:sqlite") as typeof nodeSqlite | undefined;
    loaded = found ?? null;
    return found;
  } finally {
    process.emitWarning = emitWarning;
  }
}
