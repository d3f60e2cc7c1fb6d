import type { JSX } from "preact";
import { getJson } from "../../api.ts";
import { count, counted, durationOf, momentOf, sizeOf } from "../../format.ts";
import type { CallJson, CallRequestJson, ListJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { CopyAs } from "../../ui/copy-button.tsx";
import { FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";
import { curlOf } from "./call-curl.ts";
import { SentMessage } from "./sent-message.tsx";
import { TokenParts } from "./token-parts.tsx";
import { timeText, tokensText } from "./calls-view.tsx";

interface CallProps {
  readonly place: SessionPlace;
  readonly callId: string;
}

/** Shows what a call sent: its messages in order, the records that they were made from, and what was shortened. */
export function CallView({ place, callId }: CallProps): JSX.Element {
  const { loaded, reload } = useLoad(`call ${callId}`, async (signal) => {
    const path = sessionPath(place, `/calls/${encodeURIComponent(callId)}`);
    const [call, request, earlier] = await Promise.all([
      getJson<CallJson>(path, placeQuery(place), signal),
      getJson<CallRequestJson>(`${path}/request`, placeQuery(place), signal),
      getJson<ListJson<CallJson>>(
        sessionPath(place, "/calls"),
        { ...placeQuery(place), before: callId, tail: 1 },
        signal,
      ),
    ]);
    return { call, request, earlier: earlier.items.at(-1) ?? null };
  });
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { call, request, earlier } = loaded.value;
  return (
    <div class="view-page call">
      <header class="call-head">
        <h2>
          Step {call.step}
          {call.attempt > 0 ? ` · attempt ${call.attempt + 1}` : ""} · {shown(`${call.provider}/${call.model}`)} ·{" "}
          {shown(call.outcome)}
        </h2>
        <p class="soft">
          {momentOf(call.atMs)} · {timeText(call)}
          {firstByteText(call)} · {counted(call.messageCount, "message")} · {tokensText(call)} tokens
          {call.windowTokens === null ? "" : ` of ${count(call.windowTokens)}`}
        </p>
        <p class="call-links">
          <a href={sessionHref(place, { v: "calls" })}>All calls</a>
          {earlier === null ? null : (
            <a href={sessionHref(place, { v: "diff", a: earlier.callId, b: callId })}>Diff to the call before</a>
          )}
          <CopyAs label="Copy as JSON" text={() => Promise.resolve(JSON.stringify(request.messages, null, 1))} />
          <CopyAs label="Copy as curl" text={() => curlOf(place, call, request)} />
        </p>
      </header>
      <RequestParts request={request} />
      <Changes call={call} request={request} place={place} />
      <dl class="menu-facts">
        <Prefix name="System prompt" text={request.system} hash={request.systemHash} />
        <Prefix name="Tools" text={request.tools} hash={request.toolsHash} />
      </dl>
      <ol class="sent">
        {request.messages.map((message, index) => (
          <SentMessage key={index} message={message} places={request.places[index] ?? []} place={place} />
        ))}
      </ol>
    </div>
  );
}

/** States how long the model took to answer, where the log does. */
function firstByteText({ startedMs, firstByteMs }: CallJson): string {
  return startedMs === null || firstByteMs === null ? "" : ` · first byte ${durationOf(firstByteMs - startedMs)}`;
}

/** The parts add up to the tokens that the head states. */
function RequestParts({ request: { breakdown } }: { readonly request: CallRequestJson }): JSX.Element {
  const { prefixTokens, summaryTokens, messageTokens, toolResultTokens } = breakdown;
  const parts = [
    ["System prompt and tools", prefixTokens, "one"],
    ["Summary", summaryTokens, "two"],
    ["Messages", messageTokens, "three"],
    ["Results of tools", toolResultTokens, "four"],
  ] as const;
  return <TokenParts parts={parts} whole={prefixTokens + summaryTokens + messageTokens + toolResultTokens} />;
}

interface ChangesProps {
  readonly call: CallJson;
  readonly request: CallRequestJson;
  readonly place: SessionPlace;
}

/** Names what the guard made smaller for this call, with the record that has the whole. */
function Changes({ call: { changes }, request: { places }, place }: ChangesProps): JSX.Element | null {
  if (changes.length === 0) return null;
  const seqs = new Map(places.flat().map(({ recordId, seq }) => [recordId, seq]));
  return (
    <section>
      <h3>{counted(changes.length, "change")} made the request smaller</h3>
      <ul class="losses">
        {changes.map(({ recordId, what, reason, beforeBytes, afterBytes }, index) => {
          const seq = recordId === null ? null : (seqs.get(recordId) ?? null);
          return (
            <li key={index}>
              {seq === null ? null : <a href={sessionHref(place, { at: seq })}>#{seq}</a>} {shown(what)}:{" "}
              {sizeOf(beforeBytes)} to {sizeOf(afterBytes)} <span class="soft">({shown(reason)})</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

interface PrefixProps {
  readonly name: string;
  readonly text: string | null;
  readonly hash: string | null;
}

/** Most logs keep the hash of a system prompt only. */
function Prefix({ name, text, hash }: PrefixProps): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {text === null ? (
          <span class="soft">{hash === null ? "none" : `not kept, hash ${shown(hash)}`}</span>
        ) : (
          <details>
            <summary>{sizeOf(text.length)}</summary>
            <pre>{shown(text)}</pre>
          </details>
        )}
      </dd>
    </div>
  );
}
