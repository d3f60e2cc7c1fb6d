import type { JSX } from "preact";
import { getJson } from "../api.ts";
import { ageOf, clockOf, count, counted, folderOf, programName } from "../format.ts";
import { isLive } from "../home/session-line.tsx";
import type { CallJson, ContextJson, ListJson, SessionJson } from "../json.ts";
import { sessionHref, type SessionPlace, type SessionView } from "../router.ts";
import { Gauge } from "../ui/gauge.tsx";
import { shown } from "../ui/text.ts";
import { costText } from "../usage/cost-text.ts";
import { useFollowed, useLoad } from "../use-load.ts";
import { ExportMenu } from "./export-menu.tsx";
import { MoreMenu } from "./more-menu.tsx";
import { ResumeMenu } from "./resume-menu.tsx";
import { placeQuery, sessionPath } from "./session-outline.ts";
import type { SessionUsage } from "./session-usage.ts";

interface HeadProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly view: SessionView;
  readonly usage: SessionUsage;
  /** Is the time of the last word of the server while it is away; null while it answers. */
  readonly staleSinceMs: number | null;
}

const tabs: readonly (readonly [SessionView, string])[] = [
  ["transcript", "Transcript"],
  ["files", "Files"],
  ["usage", "Usage"],
  ["context", "Context"],
];
const callTabs: typeof tabs = [
  ["calls", "Calls"],
  ["diff", "Diff"],
];

export function SessionHead({ session, place, view, usage, staleSinceMs }: HeadProps): JSX.Element {
  const { name, program, cwd, updatedAtMs, messageCount, model } = session;
  const isOfCalls = session.program === null && callTabs.some(([each]) => each === view);
  const hasCalls = useHasCalls(session, place) || isOfCalls;
  const facts = [
    programName(program),
    ...(cwd === null ? [] : [folderOf(cwd)]),
    ...(model === null ? [] : [model]),
    counted(messageCount, "message"),
    isLive(session) ? "live" : `${ageOf(updatedAtMs)}${ageOf(updatedAtMs) === "now" ? "" : " ago"}`,
  ];
  return (
    <div class="session-head">
      <div class="session-title">
        <h1 title={shown(name)}>{shown(name)}</h1>
        <p class="facts">
          {facts.map((fact) => (
            <span key={fact}>{shown(fact)}</span>
          ))}
          <Cost usage={usage} />
          <Window session={session} place={place} />
          {staleSinceMs === null ? null : (
            <span class="warning-text" role="status">
              stale since {clockOf(staleSinceMs)}
            </span>
          )}
        </p>
      </div>
      <div class="session-bar">
        <nav class="tabs" aria-label="Views of the session">
          {[...tabs, ...(hasCalls ? callTabs : [])].map(([each, text]) => (
            <a
              key={each}
              data-text={text}
              href={sessionHref(place, { v: each === "transcript" ? null : each })}
              aria-current={each === view || (each === "transcript" && view === "plain") ? "page" : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
        <div class="session-actions">
          <ResumeMenu session={session} place={place} />
          <ExportMenu session={session} place={place} />
          <MoreMenu session={session} place={place} view={view} />
        </div>
      </div>
    </div>
  );
}

/** Programs whose sessions are imported record no calls. */
function useHasCalls({ program }: SessionJson, place: SessionPlace): boolean {
  const { loaded } = useLoad<ListJson<CallJson>>(program === null ? `calls ${place.key}` : null, (signal) =>
    getJson(sessionPath(place, "/calls"), { ...placeQuery(place), tail: 1 }, signal),
  );
  return loaded.state === "done" && loaded.value.items.length > 0;
}

/** States what the session cost until now: the sum that the view of its usage shows. */
function Cost({ usage: { loaded } }: Pick<HeadProps, "usage">): JSX.Element | null {
  if (loaded.state !== "done" || loaded.value.total.costUsd === null || !loaded.value.hasUsage) return null;
  return <span title="What the calls of this session cost">{costText(loaded.value.total.costUsd)}</span>;
}

interface WindowProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
}

/** States how full the context is, and when it is compacted. The numbers are those of `throughline context`. */
function Window({ session, place }: WindowProps): JSX.Element | null {
  const { program, head, contextTokens, windowTokens, contextPercent } = session;
  // The context of an import is its program's matter. While a turn runs, it changes with each record.
  const name =
    program === null && head.lastSeq > 0 ? `context ${head.turn === null ? head.lastSeq : "of a turn"}` : null;
  const { loaded } = useFollowed(name, async (signal) => {
    const answer = await getJson<ContextJson>(sessionPath(place, "/context"), placeQuery(place), signal);
    // The answer has the texts of all messages, which must not stay here.
    return { gauge: answer.gauge, compactsAtTokens: answer.compactsAtTokens ?? null };
  });
  if (loaded.state === "done") {
    const { gauge, compactsAtTokens } = loaded.value;
    const sign = gauge.source === "actual" ? "" : "~";
    const left = compactsAtTokens === null ? null : compactsAtTokens - gauge.tokens;
    return (
      <span class="window">
        {sign}
        {count(gauge.tokens)}
        {gauge.windowTokens === null ? "" : ` / ${count(gauge.windowTokens)}`} tokens
        <Gauge percent={gauge.percent} />
        {left === null ? null : left > 0 ? ` compacts in ${sign}${count(left)}` : " compacts before the next turn"}
      </span>
    );
  }
  if (contextTokens === null) return null;
  return (
    <span class="window" title="Tokens of the last request, as the provider counted them">
      {count(contextTokens)}
      {windowTokens === null ? "" : ` / ${count(windowTokens)}`} tokens
      <Gauge percent={contextPercent} />
    </span>
  );
}
