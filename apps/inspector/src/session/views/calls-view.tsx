import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../../api.ts";
import { clockOf, count, counted, durationOf, momentOf, programName } from "../../format.ts";
import type { CallJson, ListJson, SessionJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";

interface CallsProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
}

const pageCalls = 100;

/** Lists the calls of models, the newest first. One call opens what was sent. */
export function CallsView({ session, place }: CallsProps): JSX.Element {
  const [before, setBefore] = useState<string | null>(null);
  const { loaded, reload } = useLoad<ListJson<CallJson>>(`${session.head.lastSeq} ${before}`, (signal) =>
    getJson(sessionPath(place, "/calls"), { ...placeQuery(place), tail: pageCalls, before }, signal),
  );
  if (session.program !== null) return <NoCalls session={session} />;
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { items } = loaded.value;
  if (items.length === 0)
    return (
      <EmptyState title="No call is recorded">
        <p>A model was not called in this session, or by a program that does not record its calls.</p>
      </EmptyState>
    );
  const [oldest] = items;
  return (
    <div class="view-page">
      <div class="wide-table" tabIndex={0} role="region" aria-label="Calls">
        <table>
          <thead>
            <tr>
              <th>Call</th>
              <th>Model</th>
              <th class="right">Messages</th>
              <th class="right">Tokens sent</th>
              <th class="right">Tokens back</th>
              <th class="right">Time</th>
              <th>Outcome</th>
            </tr>
          </thead>
          <tbody>
            {items.toReversed().map((call) => (
              <CallLine key={call.callId} call={call} place={place} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="pages">
        {before === null ? null : (
          <button type="button" class="button" onClick={() => setBefore(null)}>
            Newest calls
          </button>
        )}
        {items.length < pageCalls || oldest === undefined ? null : (
          <button type="button" class="button" onClick={() => setBefore(oldest.callId)}>
            Earlier calls
          </button>
        )}
      </p>
    </div>
  );
}

/** An import has no calls, and its views say why. */
export function NoCalls({ session }: Pick<CallsProps, "session">): JSX.Element {
  return (
    <EmptyState title="No calls are recorded">
      <p>{shown(programName(session.program))} does not record what it sent to the model.</p>
    </EmptyState>
  );
}

function CallLine({ call, place }: { readonly call: CallJson; readonly place: SessionPlace }): JSX.Element {
  const { callId, atMs, model, messageCount, actual, outcome, changes, step, attempt, toSeq } = call;
  return (
    <tr>
      <td>
        <a href={sessionHref(place, { v: "calls", call: callId })} title={momentOf(atMs)}>
          {clockOf(atMs)} · step {step}
          {attempt > 0 ? ` · attempt ${attempt + 1}` : ""}
        </a>{" "}
        <a class="soft" href={sessionHref(place, { at: toSeq })}>
          #{toSeq}
        </a>
      </td>
      <td>{shown(model)}</td>
      <td class="right">{count(messageCount)}</td>
      <td class="right">{tokensText(call)}</td>
      <td class="right">{actual === null ? "–" : count(actual.output)}</td>
      <td class="right">{timeText(call)}</td>
      <td>
        {shown(outcome)}
        {changes.length === 0 ? null : <span class="badge warning">{counted(changes.length, "change")}</span>}
      </td>
    </tr>
  );
}

/** Gives the tokens that the provider counted, else the estimate with a sign. */
export function tokensText({ actual, estimatedTokens }: CallJson): string {
  if (actual === null) return `~${count(estimatedTokens)}`;
  return count(actual.input + actual.cacheRead + actual.cacheWrite);
}

export function timeText({ startedMs, endedMs }: CallJson): string {
  return startedMs === null || endedMs === null ? "–" : durationOf(endedMs - startedMs);
}
