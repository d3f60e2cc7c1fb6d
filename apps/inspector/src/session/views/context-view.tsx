import type { JSX } from "preact";
import { getJson } from "../../api.ts";
import { count, counted, programName } from "../../format.ts";
import type { ContextJson, SessionJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";
import { TokenParts } from "./token-parts.tsx";

interface ContextProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
}

/** Shows what the next request holds, by its parts. The numbers are those of `throughline context`. */
export function ContextView({ session, place }: ContextProps): JSX.Element {
  const { loaded, reload } = useLoad<ContextJson>(`context ${session.head.lastSeq}`, (signal) =>
    getJson(sessionPath(place, "/context"), placeQuery(place), signal),
  );
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { gauge, breakdown, messages, compactsAtTokens = null } = loaded.value;
  if (messages.length === 0)
    return (
      <EmptyState title="The next request holds no message yet">
        <p>Its parts appear here with the first message.</p>
      </EmptyState>
    );
  const parts = [
    ["System prompt and tools", breakdown.systemTokens + breakdown.toolsTokens, "one"],
    ["Summary", breakdown.summaryTokens, "two"],
    ["Messages", breakdown.messageTokens, "three"],
    ["Results of tools", breakdown.toolResultTokens, "four"],
  ] as const;
  const sign = gauge.source === "actual" ? "" : "~";
  return (
    <div class="view-page context">
      {session.program === null ? null : (
        <p class="note soft">
          {shown(programName(session.program))} does not record what it sent to the model. This is what Throughline
          would send now.
        </p>
      )}
      <p class="context-total">
        <b>
          {sign}
          {count(gauge.tokens)}
        </b>{" "}
        tokens
        {gauge.windowTokens === null ? "" : ` of ${count(gauge.windowTokens)}`}
        {gauge.percent === null ? "" : ` · ${Math.round(gauge.percent)} %`}
        {compactsAtTokens === null ? "" : ` · compacts at ${count(compactsAtTokens)}`}
      </p>
      <TokenParts parts={parts} whole={gauge.windowTokens ?? gauge.tokens} />
      <Omitted context={loaded.value} place={place} />
    </div>
  );
}

interface OmittedProps {
  readonly context: ContextJson;
  readonly place: SessionPlace;
}

/** Lists the records that the next request does not hold, and why. */
function Omitted({ context: { messages, omitted, repairs }, place }: OmittedProps): JSX.Element {
  return (
    <>
      <h2>{counted(messages.length, "message")}</h2>
      {omitted.length === 0 ? <p class="soft">Every record of the conversation is in it.</p> : null}
      <ul class="plain-list">
        {omitted.map(({ fromSeq, toSeq, reason }) => (
          <li key={fromSeq}>
            <a href={sessionHref(place, { at: fromSeq })}>
              #{fromSeq} to #{toSeq}
            </a>{" "}
            left out: {shown(reason)}
          </li>
        ))}
        {repairs.length > 0 ? (
          <li>{counted(repairs.length, "repair")} made the messages valid for the provider</li>
        ) : null}
      </ul>
    </>
  );
}
