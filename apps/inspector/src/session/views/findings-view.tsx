import type { JSX } from "preact";
import { getJson } from "../../api.ts";
import type { FindingJson, ListJson } from "../../json.ts";
import type { SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";

/** Lists what is damaged or was repaired in a session, as `throughline doctor` reports it. */
export function FindingsView({ place }: { readonly place: SessionPlace }): JSX.Element {
  const { loaded, reload } = useLoad<ListJson<FindingJson>>("findings", (signal) =>
    getJson(sessionPath(place, "/findings"), placeQuery(place), signal),
  );
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  if (loaded.value.items.length === 0)
    return (
      <EmptyState title="Nothing is damaged">
        <p>Every record of the session can be read, and its chain is whole.</p>
      </EmptyState>
    );
  return (
    <ul class="view-page findings">
      {loaded.value.items.map(({ code, severity, message, remedy, recordId }, index) => (
        <li key={index}>
          <span class={`badge ${severity === "info" ? "plain" : severity}`}>{shown(severity)}</span>
          <p>
            {shown(message)}
            {recordId === null ? null : <code> {shown(recordId)}</code>}
          </p>
          <p class="soft">{shown(remedy)}</p>
          <code class="soft">{shown(code)}</code>
        </li>
      ))}
    </ul>
  );
}
