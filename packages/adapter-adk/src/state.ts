import { openSession, type RandomSource, type SessionRef, type SessionStore } from "@throughline/core";
import { type Fields, isFields, updateEntry } from "@throughline/core/internal";

/** Holds state by its owner, without the prefixes of the keys. */
export interface SplitState {
  readonly session: Fields;
  readonly app: Fields;
  readonly user: Fields;
}

/** Splits a state by the prefixes of its keys. Keys with `temp:` belong to one run and are dropped. */
export function splitState(state: Fields): SplitState {
  const parts = {
    session: new Map<string, unknown>(),
    app: new Map<string, unknown>(),
    user: new Map<string, unknown>(),
  };
  for (const [key, value] of Object.entries(state)) {
    if (key.startsWith("app:")) parts.app.set(key.slice(4), value);
    else if (key.startsWith("user:")) parts.user.set(key.slice(5), value);
    else if (!key.startsWith("temp:")) parts.session.set(key, value);
  }
  const { session, app, user } = parts;
  return { session: Object.fromEntries(session), app: Object.fromEntries(app), user: Object.fromEntries(user) };
}

/** Returns the state change of an event without `temp:` keys, because these belong to one run. */
export function deltaOf({ actions }: Fields): Fields {
  const delta = isFields(actions) && isFields(actions["stateDelta"]) ? actions["stateDelta"] : {};
  return Object.fromEntries(Object.entries(delta).filter(([key]) => !key.startsWith("temp:")));
}

/** Builds the state for a run, which expects the prefixes in the keys. */
export function mergedState({ session, app, user }: SplitState): Record<string, unknown> {
  return Object.fromEntries([
    ...Object.entries(session),
    ...Object.entries(app).map(([key, value]) => [`app:${key}`, value] as const),
    ...Object.entries(user).map(([key, value]) => [`user:${key}`, value] as const),
  ]);
}

export function stateOf(entry: Fields | undefined): Fields {
  return isFields(entry?.["adkState"]) ? entry["adkState"] : {};
}

export function joinedState(state: Fields, delta: Fields): Fields {
  return Object.fromEntries([...Object.entries(state), ...Object.entries(delta)]);
}

/** Holds state of an app and of a user that their own sessions still lack. */
export interface PendingState extends Pick<SplitState, "app" | "user"> {
  /**
   * Holds the time of the change in UTC milliseconds. A later change wins, in whatever order the changes are written.
   */
  readonly atMs: number;
}

/** Merges a change with pending state of earlier events; null when the change contains no such state. */
export function pendingOf({ app, user }: SplitState, left: PendingState | null, atMs: number): PendingState | null {
  if (Object.keys(app).length + Object.keys(user).length === 0) return null;
  return { app: joinedState(left?.app ?? {}, app), user: joinedState(left?.user ?? {}, user), atMs };
}

export function pendingIn({ adkPending }: Fields): PendingState | null {
  if (!isFields(adkPending)) return null;
  const { app, user, atMs } = adkPending;
  return {
    app: isFields(app) ? app : {},
    user: isFields(user) ? user : {},
    atMs: typeof atMs === "number" ? atMs : 0,
  };
}

/** Changes the state of an app or of a user in its own session. A key with a later change keeps its value. */
export async function changeState(
  store: SessionStore,
  ref: SessionRef,
  { delta, atMs }: { readonly delta: Fields; readonly atMs: number },
  random: RandomSource,
): Promise<void> {
  if (Object.keys(delta).length === 0) return;
  await openSession(store, ref, { random });
  await updateEntry(store, ref, (entry) => {
    const known = isFields(entry["adkStateAtMs"]) ? entry["adkStateAtMs"] : {};
    const isLater = (key: string): boolean => Object.hasOwn(known, key) && Number(known[key]) > atMs;
    const fresh = Object.entries(delta).filter(([key]) => !isLater(key));
    const times = fresh.map(([key]) => [key, atMs] as const);
    return {
      ...entry,
      adkState: joinedState(stateOf(entry), Object.fromEntries(fresh)),
      adkStateAtMs: joinedState(known, Object.fromEntries(times)),
    };
  });
}
