import { runSteps } from "@throughline/core/internal";
import { diffBlock, diffLines } from "@throughline/transcript-view/internal";
import type { JSX } from "preact";
import { getJson } from "../../api.ts";
import { clockOf, count, sizeOf } from "../../format.ts";
import type { CallJson, CallRequestJson, ListJson, SessionJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { viewNodes } from "../../ui/view-nodes.tsx";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";
import { NoCalls } from "./calls-view.tsx";
import { compareMessages, type ComparedPart } from "./compare-messages.ts";
import { textOfMessage } from "./message-text.ts";

interface DiffProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly query: URLSearchParams;
}

/** Compares what two calls sent. Without names in the address these are the two newest calls. */
export function DiffView({ session, place, query }: DiffProps): JSX.Element {
  const [a, b] = [query.get("a"), query.get("b")];
  const { loaded, reload } = useLoad(session.program === null ? `diff ${a} ${b}` : null, async (signal) => {
    const pair = a !== null && b !== null ? [a, b] : await newestTwo(place, signal);
    if (pair === null) return null;
    const requests = pair.map((id) => {
      const path = sessionPath(place, `/calls/${encodeURIComponent(id)}`);
      const query = placeQuery(place);
      return Promise.all([
        getJson<CallJson>(path, query, signal),
        getJson<CallRequestJson>(`${path}/request`, query, signal),
      ]);
    });
    return Promise.all(requests);
  });
  if (session.program !== null) return <NoCalls session={session} />;
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const [before, after] = loaded.value ?? [];
  if (before === undefined || after === undefined)
    return (
      <EmptyState title="There is one call or none">
        <p>A comparison needs two calls.</p>
      </EmptyState>
    );
  const parts = compareMessages(before[1].messages, after[1].messages);
  const areToolsChanged = before[1].toolsHash !== after[1].toolsHash;
  const isSystemChanged = before[1].systemHash !== after[1].systemHash;
  // Providers read the tools and the system prompt before the messages.
  const isPrefixChanged = areToolsChanged || isSystemChanged;
  const first = isPrefixChanged ? -1 : parts.findIndex(({ sign }) => sign !== "=");
  return (
    <div class="view-page call">
      <h2>
        <CallLink call={before[0]} place={place} /> to <CallLink call={after[0]} place={place} />
      </h2>
      <ul class="plain-list">
        <Prefix name="Tools" isChanged={areToolsChanged} isFirst={areToolsChanged} />
        <Prefix name="System prompt" isChanged={isSystemChanged} isFirst={isSystemChanged && !areToolsChanged} />
      </ul>
      <ol class="compared">
        {parts.map((part, index) => (
          <Part key={index} part={part} isFirst={index === first} />
        ))}
      </ol>
    </div>
  );
}

async function newestTwo(place: SessionPlace, signal: AbortSignal): Promise<readonly string[] | null> {
  const query = { ...placeQuery(place), tail: 2 };
  const { items } = await getJson<ListJson<CallJson>>(sessionPath(place, "/calls"), query, signal);
  return items.length < 2 ? null : items.map(({ callId }) => callId);
}

function CallLink({ call, place }: { readonly call: CallJson; readonly place: SessionPlace }): JSX.Element {
  return (
    <a href={sessionHref(place, { v: "calls", call: call.callId })}>
      #{call.toSeq} · {clockOf(call.atMs)} · step {call.step}
    </a>
  );
}

interface PrefixProps {
  readonly name: string;
  readonly isChanged: boolean;
  /** Is true for the first difference of the two calls. */
  readonly isFirst: boolean;
}

function Prefix({ name, isChanged, isFirst }: PrefixProps): JSX.Element {
  return (
    <li>
      {name}: {isChanged ? <b class="warning-text">changed</b> : "the same"} {isFirst ? <CacheBreak /> : null}
    </li>
  );
}

function CacheBreak(): JSX.Element {
  return <span class="badge warning">cache breaks here</span>;
}

const mostCharacters = 200_000;
const openCharacters = 2000;

function Part({ part, isFirst }: { readonly part: ComparedPart; readonly isFirst: boolean }): JSX.Element {
  const { sign, from, to, before, after } = part;
  const range = from === to ? `Message ${count(from)}` : `Messages ${count(from)}–${count(to)}`;
  const name = { "=": "the same", "~": "changed", "+": "new", "-": "left out" }[sign];
  return (
    <li class={`compared-part of-${name.replace(" ", "-")}`}>
      <p>
        <code>{sign}</code> {range}: {name} {isFirst && sign !== "+" ? <CacheBreak /> : null}
      </p>
      {sign === "=" ? null : <Texts before={before} after={after} />}
    </li>
  );
}

function Texts({ before, after }: Pick<ComparedPart, "before" | "after">): JSX.Element {
  const texts = [before, after].map((message) => (message === null ? "" : textOfMessage(message)));
  const [old = "", now = ""] = texts;
  if (old.length + now.length > mostCharacters)
    return (
      <p class="soft">
        {sizeOf(old.length)} to {sizeOf(now.length)}: too large to compare here
      </p>
    );
  const lines = runSteps(diffLines({ edits: [{ before: old, after: now }], patch: null, isWhole: false }));
  return (
    <details open={old.length + now.length < openCharacters || (before !== null && after !== null)}>
      <summary>
        {shown(String((after ?? before)?.["role"] ?? "message"))} · {sizeOf(Math.max(old.length, now.length))}
      </summary>
      <div class="long">{viewNodes([runSteps(diffBlock(lines))])}</div>
    </details>
  );
}
