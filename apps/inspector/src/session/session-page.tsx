import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { SessionJson } from "../json.ts";
import { useKeys } from "../keys.ts";
import { navigate, type Route, sessionHref } from "../router.ts";
import { FailedState, LoadingRows } from "../ui/states.tsx";
import { shown } from "../ui/text.ts";
import { type FollowedSession, useSession } from "./live/use-session.ts";
import { SessionContent } from "./session-content.tsx";
import { SessionHead } from "./session-head.tsx";
import { useSessionUsage } from "./session-usage.ts";

type SessionRoute = Extract<Route, { readonly page: "session" }>;

export function Page({ route }: { readonly route: SessionRoute }): JSX.Element {
  const { place } = route;
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
    <Pane
      key={`${place.key} ${loaded.value.sessionId}`}
      session={loaded.value}
      route={route}
      reply={reply}
      staleSinceMs={staleSinceMs}
      erasures={erasures}
    />
  );
}

interface PaneProps extends Omit<FollowedSession, "loaded" | "reload"> {
  readonly session: SessionJson;
  readonly route: SessionRoute;
}

function Pane({ session, route, reply, staleSinceMs, erasures }: PaneProps): JSX.Element {
  const { place, view } = route;
  const usage = useSessionUsage(session, place, view);
  return (
    <main class="session" id="main">
      <SessionHead session={session} place={place} view={view} usage={usage} staleSinceMs={staleSinceMs} />
      <SessionContent key={erasures} session={session} route={route} reply={reply} usage={usage} />
    </main>
  );
}
