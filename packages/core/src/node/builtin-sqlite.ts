import type * as nodeSqlite from "node:sqlite";

let loaded: typeof nodeSqlite | null = null;

/**
 * Loads Node's own SQLite on first use. Returns undefined when this Node has none. Node 22 warns on stderr that SQLite
 * is experimental. This one warning is suppressed, and every other warning passes.
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
