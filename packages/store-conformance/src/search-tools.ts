import assert from "node:assert/strict";
import type {
  ForkFacet,
  SearchFacet,
  SearchHit,
  SearchQuery,
  SessionRef,
  SessionStore,
  StoreCapabilities,
} from "@throughline/core";
import { createSession, userDraft, type NewSession } from "./case-tools.ts";

export const requiresSearch = ({ search }: StoreCapabilities): boolean => search;

export function searchOf({ search }: SessionStore): SearchFacet {
  assert.ok(search !== undefined, "a store that declares search has the facet");
  return search;
}

export function forkOf({ fork }: SessionStore): ForkFacet {
  assert.ok(fork !== undefined, "a store that declares fork has the facet");
  return fork;
}

/** Returns the hits of a query; a text is a query by text. */
export async function hitsOf(store: SessionStore, query: string | SearchQuery): Promise<SearchHit[]> {
  const hits: SearchHit[] = [];
  const asked = typeof query === "string" ? { text: query } : query;
  for await (const hit of searchOf(store).search(asked)) hits.push(hit);
  return hits;
}

/** Returns the hits as `<session id>/<seq>`, sorted. */
export async function foundBy(store: SessionStore, query: string | SearchQuery): Promise<string[]> {
  return (await hitsOf(store, query)).map(({ sessionId, seq }) => `${sessionId}/${seq}`).toSorted();
}

/** Creates the session `session-<name>` with one user message per text. */
export async function saying(
  store: SessionStore,
  name: string,
  texts: readonly string[],
  options: NewSession = {},
): Promise<SessionRef> {
  const ref = await createSession(store, name, options);
  await store.append(
    ref,
    texts.map((text) => userDraft(text)),
  );
  return ref;
}

/** Creates a user message with a time of its own. */
export function timed(text: string, timestamp: string): ReturnType<typeof userDraft> {
  return userDraft(text, { timestamp });
}
