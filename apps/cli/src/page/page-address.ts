import type { SessionRef } from "@throughline/core";

interface PlaceOnPage {
  readonly ref: SessionRef;
  /** Is the seq of a record, which the page shows. */
  readonly seq: number | null;
}

/**
 * Returns the address of the page on a server, of a session there, or of one of its records. A token stands in the
 * fragment, which no browser sends to a server.
 */
export function pageAddress(serverUrl: string, place: PlaceOnPage | null, token: string | null = null): string {
  const base = `${serverUrl}${serverUrl.endsWith("/") ? "" : "/"}inspect/`;
  const query = new URLSearchParams();
  if (place !== null) {
    const { agentId, key, archiveId } = place.ref;
    if (!key.startsWith(`agent:${agentId}:`)) query.set("agent", agentId);
    if (archiveId !== undefined) query.set("archive", archiveId);
    if (place.seq !== null) query.set("at", String(place.seq));
  }
  const path = place === null ? "" : `s/~${Buffer.from(place.ref.key).toString("base64url")}`;
  const asked = query.size === 0 ? "" : `?${query.toString()}`;
  return `${base}${path}${asked}${token === null ? "" : `#token=${token}`}`;
}
