import type { SessionStore } from "@throughline/core";

export { processOwners, type TurnOwners } from "@throughline/core/internal/node";

const turnsOf = new WeakMap<SessionStore, Set<string>>();

/**
 * Holds the ids of turns that this process opened, left without closing, and will never write to again. Their leases
 * still run in the log. The next turn that this process opens need not wait for them.
 */
export function abandonedTurns(store: SessionStore): Set<string> {
  const known = turnsOf.get(store);
  if (known !== undefined) return known;
  const turns = new Set<string>();
  turnsOf.set(store, turns);
  return turns;
}
