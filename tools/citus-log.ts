/** Counts a message of the servers. */
export interface LoggedMessage {
  readonly text: string;
  readonly count: number;
}

const unplanned = /^(?:0A000|XX000) ERROR: {2}(.*)$/;
const warning = /^[0-9A-Z]{5} WARNING: {2}(.*)$/;

/** A statement that was planned before a shard moved may name the shard at its old place. The store repeats it. */
const moved = /could not find valid entry for shard|relation "[^"]*" does not exist/;

/**
 * Returns the messages of statements that Citus could not plan or pass on, the most frequent first. The logs are those of
 * servers with `log_line_prefix = '%e '`. After such a statement Citus passes on no more calls on that connection.
 */
export function unplannedStatements(logs: readonly string[]): readonly LoggedMessage[] {
  return counted(logs, unplanned).filter(({ text }) => !moved.test(text));
}

/** Returns the warnings in the logs, the most frequent first. */
export function warnings(logs: readonly string[]): readonly LoggedMessage[] {
  return counted(logs, warning);
}

function counted(logs: readonly string[], pattern: RegExp): readonly LoggedMessage[] {
  const counts = new Map<string, number>();
  for (const line of logs.flatMap((log) => log.split("\n"))) {
    const text = pattern.exec(line)?.[1]?.replaceAll(/\d+/g, "N");
    if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => ({ text, count })).toSorted((one, other) => other.count - one.count);
}
