import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { navigate, type Route, sessionHref } from "../router.ts";
import { FailedState, LoadingRows } from "../ui/states.tsx";
import { shown } from "../ui/text.ts";
import { useSession } from "./live/use-session.ts";
import { SessionContent } from "./session-content.tsx";
import { SessionHead } from "./session-head.tsx";

type SessionRoute = Extract<Route, { readonly page: "session" }>;

export function Page({ route }: { readonly route: SessionRoute }): JSX.Element {
  const { place, view } = route;
  const { loaded, reload, reply, staleSinceMs, erasures } = useSession(place);
  const name = loaded.state === "done" ? loaded.value.name : null;
  useEffect(() => {
    if (name !== null) document.title = `${shown(name)} · Throughline`;
    return () => void (document.title = "Throughline");
  }, [name]);
  useKeys({
    f: () => navigate(sessionHref(place, { v: "files" })),
    u: () => navigate(sessionHref(place, { v: "usage" })),
    c: () => navigate(sessionHref(place, { v: "calls" })),
  });
  if (loaded.state !== "done")
    return (
      <main class="page" id="main">
        <h1 class="hidden">Session</h1>
        {loaded.state === "failed" ? <FailedState error={loaded.error} reload={reload} /> : <LoadingRows rows={10} />}
      </main>
    );
  return (
    <main class="session" id="main">
      <SessionHead session={loaded.value} place={place} view={view} staleSinceMs={staleSinceMs} />
      <SessionContent
        key={`${place.key} ${loaded.value.sessionId} ${erasures}`}
        session={loaded.value}
        route={route}
        reply={reply}
      />
    </main>
  );
}
