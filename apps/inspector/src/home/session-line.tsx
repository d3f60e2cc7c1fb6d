import type { JSX } from "preact";
import { ageOf, count, dateOf, folderOf, momentOf, programName } from "../format.ts";
import type { SessionJson } from "../json.ts";
import { placeOf, sessionHref } from "../router.ts";
import { Gauge } from "../ui/gauge.tsx";
import { shown } from "../ui/text.ts";

/** Shows a session as one line that is a link. */
export function SessionLine({ session }: { readonly session: SessionJson }): JSX.Element {
  const { name, program, cwd, updatedAtMs, messageCount, contextPercent } = session;
  return (
    <a class="line" href={sessionHref(placeOf(session))} data-key={session.key}>
      <span class="line-name" title={shown(name)}>
        {shown(name)}
        <Signs session={session} />
      </span>
      <span class="line-program">
        <span class="dot" data-program={program === null ? "own" : shown(program)} aria-hidden="true" />
        {shown(programName(program))}
      </span>
      <span class="line-folder" title={shown(cwd)}>
        {cwd === null ? <span class="faint">–</span> : <bdi>{shown(folderOf(cwd))}</bdi>}
      </span>
      <span class="line-gauge">{contextPercent === null ? null : <Gauge percent={contextPercent} />}</span>
      <span class="line-count">
        {count(messageCount)}
        <span class="unit"> msg</span>
      </span>
      <time class="line-age" dateTime={isoOf(updatedAtMs)} title={momentOf(updatedAtMs)}>
        {ageOf(updatedAtMs)}
        <span class="hidden"> ago, {dateOf(updatedAtMs)}</span>
      </time>
    </a>
  );
}

function isoOf(tsMs: number): string | undefined {
  return Math.abs(tsMs) < 8.64e15 ? new Date(tsMs).toISOString() : undefined;
}

/** A program whose file changed within this time is taken to be at work. */
const liveMs = 5 * 60_000;

export function isLive({ head, sourceAtMs }: SessionJson, nowMs: number = Date.now()): boolean {
  if (head.turn !== null && head.turn.leaseUntilMs > nowMs) return true;
  return typeof sourceAtMs === "number" && nowMs - sourceAtMs < liveMs;
}

/** Lists what is special about a session, in words. */
function Signs({ session }: { readonly session: SessionJson }): JSX.Element {
  const { state, forkedFrom, spawnedBy, pendingApprovals, incomplete } = session;
  return (
    <>
      {isLive(session) ? <span class="tag live">live</span> : null}
      {pendingApprovals > 0 ? <span class="tag warning">waits for you</span> : null}
      {forkedFrom === null || forkedFrom === undefined ? null : <span class="tag">fork</span>}
      {spawnedBy === null ? null : <span class="tag">sub-agent</span>}
      {state === "archived" ? <span class="tag">archived</span> : null}
      {incomplete === null ? null : <span class="tag warning">{shown(incomplete)} not finished</span>}
    </>
  );
}
