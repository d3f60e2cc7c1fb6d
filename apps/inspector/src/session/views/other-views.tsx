import type { JSX } from "preact";
import type { SessionJson } from "../../json.ts";
import type { Route } from "../../router.ts";
import type { SessionUsage } from "../session-usage.ts";
import { CallView } from "./call-view.tsx";
import { CallsView } from "./calls-view.tsx";
import { ContextView } from "./context-view.tsx";
import { DiffView } from "./diff-view.tsx";
import { FilesView } from "./files-view.tsx";
import { FindingsView } from "./findings-view.tsx";
import { RawView } from "./raw-view.tsx";
import { TreeView } from "./tree-view.tsx";
import { UsageView } from "./usage-view.tsx";

interface ViewProps {
  readonly session: SessionJson;
  readonly usage: SessionUsage;
  readonly route: Extract<Route, { readonly page: "session" }>;
}

/** Shows one of the views beside the transcript. The page loads this script for the first of them. */
export function Page({ session, usage, route: { view, place, query } }: ViewProps): JSX.Element | null {
  switch (view) {
    case "files":
      return <FilesView place={place} query={query} />;
    case "usage":
      return <UsageView session={session} place={place} usage={usage} />;
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
    default:
      return null;
  }
}
