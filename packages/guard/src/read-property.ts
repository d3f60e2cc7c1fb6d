/**
 * A thrown value may be a proxy or have a getter that throws. A property that cannot be read counts as undefined, so
 * that classification never throws.
 */
export function readProperty(value: unknown, key: string): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  try {
    return (value as Readonly<Record<string, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** Returns no keys when listing them throws, as a proxy may do. */
export function ownKeys(value: object): readonly string[] {
  try {
    return Object.keys(value);
  } catch {
    return [];
  }
}
