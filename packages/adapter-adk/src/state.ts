import { openSession, type RandomSource, type SessionRef, type SessionStore, updateEntry } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";

/** State by whom it belongs to, without the prefixes of the keys. */
export interface SplitState {
  readonly session: Fields;
  readonly app: Fields;
  readonly user: Fields;
}

/** Splits a state by the prefixes of its keys; `temp:` is of one run and goes. */
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

/** What an event changes, without what is of one run. */
export function deltaOf({ actions }: Fields): Fields {
  const delta = isFields(actions) && isFields(actions["stateDelta"]) ? actions["stateDelta"] : {};
  return Object.fromEntries(Object.entries(delta).filter(([key]) => !key.startsWith("temp:")));
}

/** A state as a run sees it. */
export function mergedState({ session, app, user }: SplitState): Record<string, unknown> {
  return Object.fromEntries([
    ...Object.entries(session),
    ...Object.entries(app).map(([key, value]) => [`app:${key}`, value] as const),
    ...Object.entries(user).map(([key, value]) => [`user:${key}`, value] as const),
  ]);
}

/** The state that an entry holds. */
export function stateOf(entry: Fields | undefined): Fields {
  return isFields(entry?.["adkState"]) ? entry["adkState"] : {};
}

/** One state over another. */
export function joinedState(state: Fields, delta: Fields): Fields {
  return Object.fromEntries([...Object.entries(state), ...Object.entries(delta)]);
}

/** Changes the state of an app or of a user, which lies in a session of its own. */
export async function changeState(
  store: SessionStore,
  ref: SessionRef,
  delta: Fields,
  random: RandomSource,
): Promise<void> {
  if (Object.keys(delta).length === 0) return;
  await openSession(store, ref, { random });
  await updateEntry(store, ref, (entry) => ({ ...entry, adkState: joinedState(stateOf(entry), delta) }));
}
