import type { SessionEntry } from "@throughline/core";
import { keptOnReset } from "@throughline/core/internal";

/**
 * Returns the fields that a new session under the key keeps. Facts learned about a model are kept because they hold in
 * every session.
 */
export function resetEntry(entry: SessionEntry): Readonly<Record<string, unknown>> {
  const own = entry["throughline"];
  if (typeof own !== "object" || own === null) return keptOnReset(entry);
  const { spend: _spend, thresholds: _thresholds, ...learned } = own as Readonly<Record<string, unknown>>;
  return { ...keptOnReset(entry), throughline: learned };
}
