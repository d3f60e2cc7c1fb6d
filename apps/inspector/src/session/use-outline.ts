import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, isAbort } from "../api.ts";
import type { RecordsJson, SessionJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
import { errorOf, type Loaded } from "../use-load.ts";
import { loadOutline, placeQuery, SessionOutline, sessionPath } from "./session-outline.ts";

export interface OutlineState {
  readonly outline: SessionOutline;
  /** Changes with each part of the outline, which is the same object. */
  readonly version: number;
  /** States the record up to which the conversation goes. */
  readonly headSeq: number;
}

interface LoadedOutline {
  readonly loaded: Loaded<OutlineState>;
  readonly reload: () => void;
}

/** Loads the outline of a session, and what was appended since whenever the session has more records. */
export function useOutline(session: SessionJson, place: SessionPlace, atSeq: number): LoadedOutline {
  const [turn, setTurn] = useState(0);
  const [loaded, setLoaded] = useState<Loaded<OutlineState>>({ state: "loading" });
  const outline = useRef(new SessionOutline());
  const { lastSeq, headId } = session.head;
  useEffect(() => {
    const stop = new AbortController();
    const load = async (): Promise<void> => {
      const headSeq = await seqOf(place, headId, lastSeq, stop.signal);
      for await (const { count } of loadOutline(place, outline.current, atSeq, stop.signal)) {
        if (stop.signal.aborted) return;
        setLoaded({ state: "done", value: { outline: outline.current, version: count, headSeq } });
      }
    };
    load().catch((error: unknown) => {
      if (!isAbort(error) && !stop.signal.aborted) setLoaded({ state: "failed", error: errorOf(error) });
    });
    return () => stop.abort();
  }, [lastSeq, headId, turn]);
  return { loaded, reload: () => setTurn((at) => at + 1) };
}

/** Returns the seq of a record by its id. The head is the newest record unless the conversation was rewound. */
async function seqOf(place: SessionPlace, id: string | null, lastSeq: number, signal: AbortSignal): Promise<number> {
  if (id === null || lastSeq === 0) return lastSeq;
  const query = { ...placeQuery(place), ids: encodeURIComponent(id), payload: "head" };
  const { items } = await getJson<RecordsJson>(sessionPath(place, "/records"), query, signal);
  return items[0]?.seq ?? lastSeq;
}
