import { useEffect, useRef, useState } from "preact/hooks";
import { getChanged, isAbort } from "../../api.ts";
import { InTurn } from "../../in-turn.ts";
import type { SessionJson } from "../../json.ts";
import type { SessionPlace } from "../../router.ts";
import { errorOf, type Loaded } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";
import type { StreamEvent } from "./event-reader.ts";
import { followSession, type Heard } from "./follow-session.ts";
import { PartialKeeper, type PartialReply } from "./partial-reply.ts";

export interface FollowedSession {
  readonly loaded: Loaded<SessionJson>;
  readonly reply: PartialReply | null;
  /** Is the time of the last word of the server while it is away; null while it answers. */
  readonly staleSinceMs: number | null;
  /** Counts the redactions since the page follows the session. What was loaded before one must be forgotten. */
  readonly erasures: number;
  readonly reload: () => void;
}

/** A hundred records in a second are ten requests for the head. */
const leastMs = 100;

/** Loads the head of a session, and again with each event of its stream while the page is visible. */
export function useSession(place: SessionPlace): FollowedSession {
  const [loaded, setLoaded] = useState<Loaded<SessionJson>>({ state: "loading" });
  const [reply, setReply] = useState<PartialReply | null>(null);
  const [staleSinceMs, setStale] = useState<number | null>(null);
  const [erasures, setErasures] = useState(0);
  const [turn, setTurn] = useState(0);
  const known = useRef(new KnownSession());
  const isVisible = useVisible();
  useEffect(() => {
    known.current = new KnownSession();
    setLoaded({ state: "loading" });
  }, [place.key, place.agent, place.archive, turn]);
  useEffect(() => {
    if (!isVisible) return undefined;
    const stop = new AbortController();
    const session = known.current;
    const countErasure = (): void => setErasures((times) => times + 1);
    const head = new HeadLoader(place, stop.signal, setLoaded, (found) => {
      if (session.takeHead(found)) countErasure();
    });
    const keeper = new PartialKeeper();
    let heardMs = Date.now();
    const options = {
      place,
      heard: () => session.heard,
      signal: stop.signal,
      onEvent: (event: StreamEvent) => {
        heardMs = Date.now();
        setStale(null);
        if (keeper.take(event)) setReply(keeper.reply);
        if (session.takeEvent(event)) countErasure();
        if (event.name !== "ping" && event.name !== "partial") void head.load();
      },
      onLost: () => {
        setStale(heardMs);
        void head.load();
      },
    };
    // The stream goes on behind the head, so that no record is missed between the two.
    void head.load().then(() => followSession(options));
    return () => {
      stop.abort();
      setReply(null);
    };
  }, [place.key, place.agent, place.archive, turn, isVisible]);
  return { loaded, reply, staleSinceMs, erasures, reload: () => setTurn((at) => at + 1) };
}

/**
 * Keeps what the page has heard of a session. It outlives the streams, so that a redaction is noticed that happened
 * while the page was hidden or the server was away.
 */
class KnownSession {
  heard: Heard | null = null;
  #messages = 0;

  /** Returns whether a redaction took messages away. An archived session gets no note of one. */
  takeHead({ sessionId, messageCount, head }: SessionJson): boolean {
    const isSame = this.heard?.sessionId === sessionId;
    const isErasure = isSame && messageCount < this.#messages;
    this.#messages = messageCount;
    if (!isSame) this.heard = { sessionId, seq: head.lastSeq };
    return isErasure;
  }

  /** Returns whether a new record notes a redaction. */
  takeEvent({ name, id, data }: StreamEvent): boolean {
    // The key has another session, or the records that were heard are gone.
    if (name === "gone") this.heard = null;
    if (name !== "record") return false;
    const slash = id.lastIndexOf("/");
    this.heard = { sessionId: id.slice(0, slash), seq: Number(id.slice(slash + 1)) };
    // A redaction ends with a note that names the redacted records. In the text of a message these quotes are escaped.
    return data.includes('"kind":"summary-outdated"');
  }
}

/** A hidden page follows nothing: a browser has six connections to a server for all its pages. */
function useVisible(): boolean {
  const [isVisible, setVisible] = useState(document.visibilityState === "visible");
  useEffect(() => {
    const listen = (): void => setVisible(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", listen);
    return () => document.removeEventListener("visibilitychange", listen);
  }, []);
  return isVisible;
}

type StateUpdater = (change: (known: Loaded<SessionJson>) => Loaded<SessionJson>) => void;

/** Loads the head of a session, and reports it when it changed. */
class HeadLoader {
  readonly #place: SessionPlace;
  readonly #signal: AbortSignal;
  readonly #put: StateUpdater;
  readonly #onFound: (session: SessionJson) => void;
  readonly #turn: InTurn;
  #tag: string | null = null;

  constructor(place: SessionPlace, signal: AbortSignal, put: StateUpdater, onFound: (session: SessionJson) => void) {
    this.#place = place;
    this.#signal = signal;
    this.#put = put;
    this.#onFound = onFound;
    this.#turn = new InTurn(() => this.#loadOnce(), signal, leastMs);
  }

  load(): Promise<void> {
    return this.#turn.ask();
  }

  async #loadOnce(): Promise<void> {
    const place = this.#place;
    try {
      const path = sessionPath(place);
      const found = await getChanged<SessionJson>(path, placeQuery(place), this.#tag, this.#signal);
      if (found === null || this.#signal.aborted) return;
      this.#tag = found.tag;
      this.#onFound(found.answer);
      this.#put(() => ({ state: "done", value: found.answer }));
    } catch (error) {
      if (isAbort(error) || this.#signal.aborted) return;
      const failed = errorOf(error);
      // The page keeps the last answer while the server is away. A token that ran out needs its reader.
      const isAway = failed.status === 0 || failed.status >= 429;
      this.#put((known) => (known.state === "done" && isAway ? known : { state: "failed", error: failed }));
    }
  }
}
