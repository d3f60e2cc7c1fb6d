import { useEffect, useMemo } from "preact/hooks";
import { getJson } from "../api.ts";
import type { RelationsJson, SessionJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
import { RecordChunks } from "./record-chunks.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

/** Loads the contents of a session. Its sub-agents arrive behind the first rows, and again when a turn ends. */
export function useRecordChunks(session: SessionJson, place: SessionPlace, onChange: () => void): RecordChunks {
  const chunks = useMemo(() => new RecordChunks(place, session.cwd, onChange), []);
  chunks.refresh(session.head.lastSeq);
  const isRunning = session.head.turn !== null;
  useEffect(() => () => chunks.stop(), []);
  useEffect(() => {
    const stop = new AbortController();
    getJson<RelationsJson>(sessionPath(place, "/relations"), placeQuery(place), stop.signal).then(
      ({ children }) => {
        if (!stop.signal.aborted) chunks.takeAgents(children);
      },
      // The calls stand there without them, and Tree reports the error.
      () => undefined,
    );
    return () => stop.abort();
  }, [isRunning]);
  return chunks;
}
