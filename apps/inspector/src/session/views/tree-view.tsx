import type { ComponentChildren, JSX } from "preact";
import { getJson } from "../../api.ts";
import { count, programName } from "../../format.ts";
import { SessionLine } from "../../home/session-line.tsx";
import { SessionList } from "../../home/session-list.tsx";
import type { RelationsJson, SessionJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";

/** Longer lists render the lines on the screen alone. */
const mostLines = 50;
const nothing = (): void => {};

/** Lists what a session came from, and what came from it. */
export function TreeView({ place }: { readonly place: SessionPlace }): JSX.Element {
  const { loaded, reload } = useLoad<RelationsJson>("relations", (signal) =>
    getJson(sessionPath(place, "/relations"), placeQuery(place), signal),
  );
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { parent, forkedFrom, children, forks, handedOff, isComplete } = loaded.value;
  if (parent === null && forkedFrom === null && children.length + forks.length + handedOff.length === 0)
    return (
      <EmptyState title="No other session belongs to this one">
        <p>It began by itself, and no fork, sub-agent or hand-off came from it.</p>
      </EmptyState>
    );
  return (
    <div class="view-page tree">
      <Origin name="Started by" from={parent} />
      <Origin name="Forked from" from={forkedFrom} />
      <Group name="Sub-agents" sessions={children} />
      <Group name="Forks" sessions={forks} />
      {handedOff.length === 0 ? null : (
        <Part name="Handed off">
          <ul class="plain-list">
            {handedOff.map(({ format, sessionId, path }) => (
              <li key={path}>
                {shown(programName(format))}: <code>{shown(sessionId)}</code>, <code>{shown(path)}</code>
              </li>
            ))}
          </ul>
        </Part>
      )}
      {isComplete ? null : <p class="soft note">The store has more than 10,000 sessions. Older ones are left out.</p>}
    </div>
  );
}

function Part({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <h2>{name}</h2>
      {children}
    </section>
  );
}

function Origin({ name, from }: { readonly name: string; readonly from: RelationsJson["parent"] }): JSX.Element | null {
  if (from === null) return null;
  const { key, sessionId, isHere, atSeq } = from;
  const text = shown(key ?? sessionId ?? "an unknown session");
  return (
    <Part name={name}>
      <p>
        {isHere && key !== null ? (
          <a href={sessionHref({ key, agent: null, archive: null }, { at: atSeq ?? null })}>{text}</a>
        ) : (
          <>
            <code>{text}</code> <span class="soft">is not in this store</span>
          </>
        )}
        {typeof atSeq === "number" ? ` at record ${atSeq}` : ""}
      </p>
    </Part>
  );
}

interface GroupProps {
  readonly name: string;
  readonly sessions: readonly SessionJson[];
}

function Group({ name, sessions }: GroupProps): JSX.Element | null {
  if (sessions.length === 0) return null;
  if (sessions.length > mostLines)
    return (
      <Part name={`${name}: ${count(sessions.length)}`}>
        <div class="tree-list">
          <SessionList name={`tree ${name}`} items={sessions} hasMore={false} onEnd={nothing} />
        </div>
      </Part>
    );
  return (
    <Part name={name}>
      <div class="lines">
        {sessions.map((session) => (
          <SessionLine key={session.sessionId} session={session} />
        ))}
      </div>
    </Part>
  );
}
