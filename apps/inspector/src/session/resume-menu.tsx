import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getJson } from "../api.ts";
import { counted, folderOf, programName } from "../format.ts";
import type { ResumeJson, SessionJson } from "../json.ts";
import { useKeys } from "../keys.ts";
import type { SessionPlace } from "../router.ts";
import { Command } from "../ui/copy-button.tsx";
import { Icon } from "../ui/icons.tsx";
import { Panel, useToggle } from "../ui/menu.tsx";
import { FailedState, LoadingRows } from "../ui/states.tsx";
import { shown } from "../ui/text.ts";
import { useLoad } from "../use-load.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

interface ResumeProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
}

/** Lists the commands that continue a session. The page runs none of them. */
export function ResumeMenu({ session, place }: ResumeProps): JSX.Element {
  const [isOpen, setOpen] = useToggle();
  useKeys({ r: () => setOpen(!isOpen) });
  return (
    <Panel label="Resume" name="Resume this session" isOpen={isOpen} onToggle={setOpen}>
      <Commands session={session} place={place} />
    </Panel>
  );
}

function Commands({ session, place }: ResumeProps): JSX.Element {
  const { loaded, reload } = useLoad<ResumeJson>("resume", (signal) =>
    getJson(sessionPath(place, "/resume"), placeQuery(place), signal),
  );
  if (loaded.state === "loading") return <LoadingRows rows={3} />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { own, here, handOff } = loaded.value;
  return (
    <>
      {own === null ? null : (
        <section>
          <h3>In {shown(programName(own.program))}</h3>
          <Command text={own.command} />
          {(own.missing ?? []).map((what) => (
            <p key={what} class="warning-text">
              {missingText(what, own)}
            </p>
          ))}
        </section>
      )}
      <section>
        <h3>In Throughline</h3>
        <Command text={here} />
        {session.program === null ? null : (
          <p class="soft">An import continues in a fork. The original stays as it is.</p>
        )}
      </section>
      {handOff.length === 0 ? null : (
        <section>
          <h3>Hand off to another program</h3>
          {handOff.map((each) => (
            <HandOff key={each.to} {...each} place={place} />
          ))}
        </section>
      )}
    </>
  );
}

function missingText(what: string, { program, cwd }: NonNullable<ResumeJson["own"]>): string {
  if (what === "program") return `${shown(programName(program))} is not installed here, or not on the path.`;
  if (what === "folder") return `Its folder ${cwd === null ? "" : shown(folderOf(cwd))} is not there any more.`;
  return `The file of ${shown(programName(program))} is not there any more.`;
}

type HandOffProps = ResumeJson["handOff"][number] & { readonly place: SessionPlace };

function HandOff({ to, command, place }: HandOffProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="hand-off">
      <button type="button" class="row-line" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "chevron" : "right"} />
        {shown(programName(to))}
      </button>
      {isOpen ? (
        <>
          <Command text={command} />
          <Losses to={to} place={place} />
        </>
      ) : null}
    </div>
  );
}

function Losses({ to, place }: Pick<HandOffProps, "to" | "place">): JSX.Element {
  const { loaded } = useLoad<ResumeJson>(to, (signal) =>
    getJson(sessionPath(place, "/resume"), { ...placeQuery(place), to }, signal),
  );
  if (loaded.state === "loading") return <p class="soft">Looking for what it leaves out …</p>;
  if (loaded.state === "failed") return <p class="soft">{loaded.error.message}</p>;
  const { losses = [] } = loaded.value;
  if (losses.length === 0) return <p class="soft">It leaves nothing out.</p>;
  return (
    <ul class="losses">
      {losses.map(({ what, kind, records }) => (
        <li key={what + kind}>
          {shown(kind)}: {shown(what.replace("-", " "))} ({counted(records, "record")})
        </li>
      ))}
    </ul>
  );
}
