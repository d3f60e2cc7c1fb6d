import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson, isAbort } from "../api.ts";
import { ageOf, count, counted } from "../format.ts";
import { useKeys } from "../keys.ts";
import { hrefWith, navigate } from "../router.ts";
import { announce } from "../ui/announce.ts";
import { EmptyState, FailedState, LoadingRows, NoSessions } from "../ui/states.tsx";
import { errorOf, type Loaded } from "../use-load.ts";
import { Filters } from "./filters.tsx";
import { filtersOf, firstPage, isCursorGone, nextPage, refreshed, type SessionPages } from "./session-pages.ts";
import { SessionList } from "./session-list.tsx";
import { TextHits } from "./text-hits.tsx";

const pollMs = 5000;

/** Keeps the loaded rows of each query for visitors who come back. The list itself remembers its place. */
const remembered = new Map<string, SessionPages>();

export function HomePage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const name = query.toString();
  const filters = useMemo(() => filtersOf(query), [name]);
  const { loaded, updatedMs, more, reload } = useSessions(name, filters);
  const total = useTotal();
  const isFiltered = name !== "";
  const pages = loaded.state === "done" ? loaded.value : null;
  useKeys({
    j: () => moveFocus(1),
    k: () => moveFocus(-1),
    g: () => moveFocus(-Infinity),
    G: () => moveFocus(Infinity),
  });
  return (
    <main class={`home${filters.q.length >= 2 ? " searching" : ""}`} id="main">
      <div class="home-head">
        <h1>Sessions</h1>
        <p class="soft" aria-live="off">
          {pages === null ? "" : summaryOf(pages, total, isFiltered)}
          {updatedMs === null
            ? ""
            : ` · updated ${ageOf(updatedMs) === "now" ? "just now" : `${ageOf(updatedMs)} ago`}`}
        </p>
        <Filters filters={filters} />
      </div>
      {loaded.state === "loading" ? <LoadingRows rows={12} /> : null}
      {loaded.state === "failed" ? <FailedState error={loaded.error} reload={reload} /> : null}
      {pages === null ? null : pages.items.length > 0 ? (
        <SessionList name={name} items={pages.items} hasMore={pages.cursor !== null} onEnd={more} />
      ) : isFiltered ? (
        <EmptyState title={filters.q === "" ? "No session matches" : "No name matches"}>
          <p>{filters.q === "" ? "Other filters show more." : "No name, folder, program or key holds these words."}</p>
          <button type="button" class="button" onClick={() => navigate("/inspect/")}>
            Show all sessions
          </button>
        </EmptyState>
      ) : (
        <NoSessions />
      )}
      {filters.q.length >= 2 ? <TextHits words={filters.q} /> : null}
      {pages !== null && name === "" && pages.leftOut > 0 ? (
        <p class="left-out">
          {counted(pages.leftOut, "sub-agent")} left out. <a href={hrefWith({ state: "sub-agents" })}>Show them</a>
        </p>
      ) : null}
    </main>
  );
}

function summaryOf({ items, cursor }: SessionPages, total: number | null, isFiltered: boolean): string {
  const shown = `${count(items.length)}${cursor === null ? "" : "+"}`;
  if (isFiltered) return total === null ? `${shown} shown` : `${shown} of ${count(total)} shown`;
  return total === null ? `${shown} shown` : `${count(total)} sessions`;
}

interface Sessions {
  readonly loaded: Loaded<SessionPages>;
  readonly updatedMs: number | null;
  readonly more: () => void;
  readonly reload: () => void;
}

/** Loads the sessions of a query page by page. While the tab is visible, the hook asks for changes each 5 s. */
function useSessions(name: string, filters: ReturnType<typeof filtersOf>): Sessions {
  const [loaded, setLoaded] = useState<Loaded<SessionPages>>(() => initial(name));
  const [updatedMs, setUpdatedMs] = useState<number | null>(null);
  const [turn, setTurn] = useState(0);
  const pages = useRef<SessionPages | null>(null);
  const isBusy = useRef(false);
  const put = (next: SessionPages): void => {
    pages.current = next;
    remembered.set(name, next);
    setLoaded({ state: "done", value: next });
  };
  useEffect(() => {
    const stop = new AbortController();
    pages.current = remembered.get(name) ?? null;
    setLoaded((before) => (pages.current === null && before.state === "done" ? before : initial(name)));
    const ask = async (): Promise<void> => {
      try {
        const first = await firstPage(filters, pages.current?.tag ?? null, stop.signal);
        if (stop.signal.aborted) return;
        if (first !== null) put(pages.current === null ? first : refreshed(pages.current, first));
        setUpdatedMs(Date.now());
      } catch (error) {
        if (!isAbort(error) && !stop.signal.aborted) setLoaded({ state: "failed", error: errorOf(error) });
      }
    };
    const first = setTimeout(() => void ask(), filters.q === "" ? 0 : 80);
    const poll = setInterval(() => {
      if (document.visibilityState === "visible") void ask();
    }, pollMs);
    return () => {
      stop.abort();
      clearTimeout(first);
      clearInterval(poll);
    };
  }, [name, turn]);
  const more = (): void => {
    const now = pages.current;
    if (now === null || now.cursor === null || isBusy.current) return;
    isBusy.current = true;
    nextPage(filters, now)
      .then((next) => {
        if (pages.current === now) put(next);
      })
      .catch((error: unknown) => {
        // The server was started again and takes no earlier cursor: the list begins anew.
        if (isCursorGone(error)) remembered.delete(name);
        else announce(errorOf(error).message);
      })
      .finally(() => (isBusy.current = false));
  };
  return { loaded, updatedMs, more, reload: () => setTurn((at) => at + 1) };
}

function initial(name: string): Loaded<SessionPages> {
  const value = remembered.get(name);
  return value === undefined ? { state: "loading" } : { state: "done", value };
}

function useTotal(): number | null {
  const [total, setTotal] = useState<number | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    getJson<{ readonly sessions: number }>("/stats", {}, stop.signal).then(
      ({ sessions }) => setTotal(sessions),
      // The total is an extra: without it the page states what it shows.
      () => setTotal(null),
    );
    return () => stop.abort();
  }, []);
  return total;
}

function moveFocus(by: number): void {
  const lines = [...document.querySelectorAll<HTMLElement>("a.line, a.hit")];
  const at = lines.indexOf(document.activeElement as HTMLElement);
  const next = at === -1 ? (by > 0 && by !== Infinity ? 0 : by === Infinity ? lines.length - 1 : 0) : at + by;
  lines[Math.max(0, Math.min(lines.length - 1, next))]?.focus();
}
