import type { JSX } from "preact";
import type { SessionJson } from "../json.ts";
import { hrefWith, type SessionPlace, sessionHref, type SessionView } from "../router.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Icon } from "../ui/icons.tsx";
import { Panel, useToggle } from "../ui/menu.tsx";
import { momentOf } from "../format.ts";
import { shown } from "../ui/text.ts";

interface MoreProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly view: SessionView;
}

const views: readonly (readonly [SessionView, string])[] = [
  ["tree", "Tree: where it came from, and its forks"],
  ["findings", "Findings: damage and repairs"],
  ["plain", "Plain transcript, page by page"],
  ["raw", "Raw: the lines as they are kept"],
];

export function MoreMenu({ session, place, view }: MoreProps): JSX.Element {
  const [isOpen, setOpen] = useToggle();
  const hasSide = new URLSearchParams(location.search).get("side") === "1";
  const facts: readonly (readonly [string, string])[] = [
    ["Key", session.key],
    ["Session", session.sessionId],
    ...(session.cwd === null ? [] : [["Folder", session.cwd] as const]),
  ];
  return (
    <Panel label={<Icon name="more" />} name="More" className="icon-button" isOpen={isOpen} onToggle={setOpen}>
      <ul class="menu-links" onClick={() => setOpen(false)}>
        {views.map(([each, text]) => (
          <li key={each}>
            <a href={sessionHref(place, { v: each })} aria-current={each === view ? "page" : undefined}>
              {text}
            </a>
          </li>
        ))}
        <li>
          <a href={hrefWith({ side: hasSide ? null : "1" })}>{hasSide ? "Hide side records" : "Show side records"}</a>
        </li>
      </ul>
      <dl class="menu-facts">
        {facts.map(([term, text]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>
              <code>{shown(text)}</code>
              <CopyButton text={text} label={`Copy: ${term}`} />
            </dd>
          </div>
        ))}
        <div>
          <dt>Begun</dt>
          <dd>{momentOf(session.createdAtMs)}</dd>
        </div>
      </dl>
    </Panel>
  );
}
