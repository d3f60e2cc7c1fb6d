import { getJson } from "../api.ts";
import type { SessionJson, SessionUsageJson } from "../json.ts";
import type { SessionPlace, SessionView } from "../router.ts";
import { useFollowed } from "../use-load.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

export type SessionUsage = ReturnType<typeof useFollowed<SessionUsageJson>>;

/** Loads what a session used, for its head and for the view of its usage. */
export function useSessionUsage({ head }: SessionJson, place: SessionPlace, view: SessionView): SessionUsage {
  // The head alone states the cost again when the turn ends.
  const version = head.turn === null || view === "usage" ? head.lastSeq : "of a turn";
  return useFollowed<SessionUsageJson>(version, (signal) =>
    getJson(sessionPath(place, "/usage"), placeQuery(place), signal),
  );
}
