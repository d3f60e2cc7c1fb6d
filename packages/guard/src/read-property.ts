/**
 * Reads a property of something thrown, which may be anything: a proxy that throws, a getter that fails. What cannot be
 * read says nothing, which is what undefined means to the caller.
 */
export function readProperty(value: unknown, key: string): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  try {
    return (value as Readonly<Record<string, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** The enumerable keys; none when they cannot be listed. */
export function ownKeys(value: object): readonly string[] {
  try {
    return Object.keys(value);
  } catch {
    return [];
  }
}
