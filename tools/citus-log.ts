/** Counts a message of the servers. */
export interface LoggedMessage {
  readonly text: string;
  readonly count: number;
}

const error = /^([0-9A-Z]{5} (?:ERROR|FATAL|PANIC): {2}.*)$/;
const warning = /^[0-9A-Z]{5} WARNING: {2}(.*)$/;

/** Lists what the cluster suite provokes. Every other error of a node shows a statement that should not have been sent. */
const expected: readonly RegExp[] = [
  // Two writers take the same key, id or file at once.
  /^23505 ERROR: {2}duplicate key value violates unique constraint/,
  // The store repeats what another transaction stopped, or refuses it as STORE_LOCKED.
  /^40P01 ERROR: {2}(?:deadlock detected|canceling the transaction since it was involved in a distributed deadlock)/,
  /^55P03 ERROR: {2}canceling statement due to lock timeout/,
  // A program gives up at its deadline, and a worker is stopped.
  /^08006 FATAL: {2}connection to client lost/,
  /^57014 ERROR: {2}canceling statement due to (?:statement timeout|user request)/,
  // A statement that was planned before a shard moved may name the shard at its old place. The store repeats it.
  /^XX000 ERROR: {2}could not find valid entry for shard/,
  /^42P01 ERROR: {2}relation "[^"]*_\d{6,}" does not exist/,
  // The store's own functions undo what they refuse.
  /^TL\d{3} ERROR: {2}/,
  // The suite breaks statements off, and each move of a shard ends its replication.
  /^22012 ERROR: {2}division by zero/,
  /^57P01 FATAL: {2}terminating logical replication worker/,
  // Roles try the rows and tables of other agents.
  /^42501 ERROR: {2}/,
];

/**
 * Returns the errors that no case of the suite provokes, the most frequent first. The logs are those of servers with
 * `log_line_prefix = '%e '`. After a statement that Citus could not plan, it passes on no more calls on that connection.
 */
export function unexpectedErrors(logs: readonly string[]): readonly LoggedMessage[] {
  const isExpected = (line: string): boolean => expected.some((pattern) => pattern.test(line));
  return counted(logs, error, isExpected);
}

/** Returns the warnings in the logs, the most frequent first. */
export function warnings(logs: readonly string[]): readonly LoggedMessage[] {
  return counted(logs, warning, () => false);
}

function counted(
  logs: readonly string[],
  pattern: RegExp,
  isLeftOut: (line: string) => boolean,
): readonly LoggedMessage[] {
  const counts = new Map<string, number>();
  for (const line of logs.flatMap((log) => log.split("\n"))) {
    const found = pattern.exec(line)?.[1];
    if (found === undefined || isLeftOut(line)) continue;
    const text = found.slice(0, 6) + found.slice(6).replaceAll(/\d+/g, "N");
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => ({ text, count })).toSorted((one, other) => other.count - one.count);
}
