import type { JSX } from "preact";
import type { SessionJson } from "../json.ts";
import type { Route } from "../router.ts";
import { LazyPart } from "../ui/lazy-page.tsx";
import type { PartialReply } from "./live/partial-reply.ts";
import { PlainTranscript } from "./plain-transcript.tsx";
import type { SessionUsage } from "./session-usage.ts";
import { Transcript } from "./transcript.tsx";

interface ContentProps {
  readonly session: SessionJson;
  readonly route: Extract<Route, { readonly page: "session" }>;
  readonly reply: PartialReply | null;
  readonly usage: SessionUsage;
}

export function SessionContent({ session, route, reply, usage }: ContentProps): JSX.Element {
  const { view, place, query } = route;
  if (view === "plain") return <PlainTranscript session={session} place={place} query={query} />;
  if (view === "transcript") return <Transcript session={session} place={place} query={query} reply={reply} />;
  return <LazyPart load={() => import("./views/other-views.tsx")} props={{ session, route, usage }} />;
}
