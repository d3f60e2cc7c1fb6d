import type { JSX } from "preact";
import { getJson } from "../../api.ts";
import { count, counted, programName } from "../../format.ts";
import type { ContextJson, SessionJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useMore } from "../../ui/use-more.tsx";
import { useFollowed } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";
import { SentMessage } from "./sent-message.tsx";
import { TokenParts } from "./token-parts.tsx";

interface ContextProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
}

/** Shows what the next request holds, by its parts. The numbers are those of `throughline context`. */
export function ContextView({ session, place }: ContextProps): JSX.Element {
  const { loaded, reload } = useFollowed<ContextJson>(session.head.lastSeq, (signal) =>
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
      <div class="context-lists">
        <LeftOut context={loaded.value} place={place} />
        <Messages messages={messages} place={place} />
      </div>
    </div>
  );
}

interface ListProps {
  readonly context: ContextJson;
  readonly place: SessionPlace;
}

const reasons: Readonly<Record<string, string>> = {
  summarized: "In a summary",
  reset: "Before a reset",
  edited: "Taken out by an edit",
  excluded: "Kept from models by its writer",
  invalid: "Unreadable",
  "other-branch": "On another branch",
  window: "Over the window",
};

/** Lists the records that the next request does not hold, by the reason. */
function LeftOut({ context: { omitted, repairs }, place }: ListProps): JSX.Element {
  const names = [...new Set(omitted.map(({ reason }) => reason))];
  return (
    <section>
      <h2>Left out</h2>
      {omitted.length === 0 ? <p class="soft">Every record of the conversation is in it.</p> : null}
      {names.map((name) => (
        <Reason key={name} name={name} ranges={omitted.filter(({ reason }) => reason === name)} place={place} />
      ))}
      {repairs.length === 0 ? null : (
        <p class="soft">{counted(repairs.length, "repair")} made the messages valid for the provider.</p>
      )}
    </section>
  );
}

interface ReasonProps {
  readonly name: string;
  readonly ranges: ContextJson["omitted"];
  readonly place: SessionPlace;
}

function Reason({ name, ranges, place }: ReasonProps): JSX.Element {
  const { shown: most, button } = useMore(ranges.length, "places", 50);
  return (
    <>
      <h3>{reasons[name] ?? shown(name)}</h3>
      <ul class="plain-list">
        {ranges.slice(0, most).map(({ fromSeq, toSeq }) => (
          <li key={fromSeq}>
            <a href={sessionHref(place, { at: fromSeq })}>
              #{fromSeq}
              {fromSeq === toSeq ? "" : ` to #${toSeq}`}
            </a>
          </li>
        ))}
      </ul>
      {button}
    </>
  );
}

type MessagesProps = Pick<ContextJson, "messages"> & { readonly place: SessionPlace };

/** Lists the messages of the next request, the newest last. Of many messages it shows the newest first. */
function Messages({ messages, place }: MessagesProps): JSX.Element {
  const { shown: most, button } = useMore(messages.length, "earlier messages", 100);
  return (
    <section>
      <h2>{counted(messages.length, "message")}</h2>
      {button}
      <ol class="sent">
        {messages.slice(messages.length - most).map((message, index) => (
          <SentMessage
            key={`${message.seq} ${index}`}
            message={message}
            places={[{ recordId: null, seq: message.seq, reason: placeOf(message.role) }]}
            place={place}
          />
        ))}
      </ol>
    </section>
  );
}

/** Says of which kind the record of a message is, where it is no message itself. */
function placeOf(role: unknown): string {
  if (role === "compactionSummary") return "summary";
  return role === "redacted" ? "redacted" : "kept";
}
