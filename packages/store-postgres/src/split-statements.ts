import type { RunStatement } from "./connection-pool.ts";

/** These texts may contain a semicolon that ends no statement. Each is given by its beginning and its end. */
const enclosures: readonly { readonly begins: RegExp; readonly end: (begin: string) => string }[] = [
  { begins: /^--/, end: () => "\n" },
  { begins: /^'/, end: () => "'" },
  { begins: /^"/, end: () => '"' },
  { begins: /^\$[a-z_]{0,63}\$/, end: (begin) => begin },
];

/**
 * Splits the store's own SQL into statements. Joined again they equal the text, because comments and white space stay
 * with the statement behind them. Citus passes on the whole string of a statement, and refuses a string that holds
 * several.
 */
export function splitStatements(sql: string): readonly string[] {
  const statements: string[] = [];
  let start = 0;
  for (let at = 0; at < sql.length; at++) {
    if (sql[at] === ";") {
      statements.push(sql.slice(start, at + 1));
      start = at + 1;
      continue;
    }
    at = lastOfEnclosed(sql, at);
  }
  const rest = sql.slice(start);
  if (rest.trim() !== "") statements.push(rest);
  else if (statements.length > 0) statements[statements.length - 1] += rest;
  return statements;
}

/** Runs the statements of a text one by one in the caller's transaction. */
export async function runStatements(run: RunStatement, sql: string): Promise<void> {
  for (const statement of splitStatements(sql)) await run(statement);
}

/**
 * Returns the end of a comment, text or name that begins here, or the same position if none begins. A doubled quote
 * counts as the beginning of another text.
 */
function lastOfEnclosed(sql: string, at: number): number {
  if (!"-'\"$".includes(sql[at] as string)) return at;
  const ahead = sql.slice(at, at + 66);
  for (const { begins, end } of enclosures) {
    const begin = begins.exec(ahead)?.[0];
    if (begin === undefined) continue;
    const close = end(begin);
    const found = sql.indexOf(close, at + begin.length);
    return found === -1 ? sql.length : found + close.length - 1;
  }
  return at;
}
