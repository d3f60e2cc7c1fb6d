import type { JSX } from "preact";
import type { SessionJson } from "../json.ts";
import type { Route } from "../router.ts";
import type { PartialReply } from "./live/partial-reply.ts";
import { PlainTranscript } from "./plain-transcript.tsx";
import { Transcript } from "./transcript.tsx";
import { CallView } from "./views/call-view.tsx";
import { CallsView } from "./views/calls-view.tsx";
import { ContextView } from "./views/context-view.tsx";
import { DiffView } from "./views/diff-view.tsx";
import { FilesView } from "./views/files-view.tsx";
import { FindingsView } from "./views/findings-view.tsx";
import { RawView } from "./views/raw-view.tsx";
import { TreeView } from "./views/tree-view.tsx";
import { UsageView } from "./views/usage-view.tsx";

interface ContentProps {
  readonly session: SessionJson;
  readonly route: Extract<Route, { readonly page: "session" }>;
  readonly reply: PartialReply | null;
}

export function SessionContent({ session, route: { view, place, query }, reply }: ContentProps): JSX.Element {
  switch (view) {
    case "files":
      return <FilesView place={place} query={query} />;
    case "usage":
      return <UsageView place={place} />;
    case "context":
      return <ContextView session={session} place={place} />;
    case "calls": {
      const callId = query.get("call");
      if (callId !== null && session.program === null) return <CallView key={callId} place={place} callId={callId} />;
      return <CallsView session={session} place={place} />;
    }
    case "diff":
      return <DiffView session={session} place={place} query={query} />;
    case "tree":
      return <TreeView place={place} />;
    case "raw":
      return <RawView session={session} place={place} query={query} />;
    case "findings":
      return <FindingsView place={place} />;
    case "plain":
      return <PlainTranscript session={session} place={place} query={query} />;
    default:
      return <Transcript session={session} place={place} query={query} reply={reply} />;
  }
}
