import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sizeOf } from "../../format.ts";
import type { PlaceJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { shown } from "../../ui/text.ts";
import { textOfMessage } from "./message-text.ts";

interface SentProps {
  readonly message: Readonly<Record<string, unknown>>;
  readonly places: readonly PlaceJson[];
  readonly place: SessionPlace;
}

/** A larger text is read in the transcript, which loads it in parts. */
const mostCharacters = 100_000;

/** Shows a message of a request as one line that opens, with links to the records that it was made from. */
export function SentMessage({ message, places, place }: SentProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const text = textOfMessage(message);
  const start = text.slice(0, 400).replaceAll(/\s+/g, " ");
  const [first] = places;
  const isPlain = places.length === 1 && first?.reason === "kept";
  return (
    <li>
      {isPlain && first.seq !== null ? <a href={sessionHref(place, { at: first.seq })}>#{first.seq}</a> : <span />}
      <div>
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>
            <b>{shown(String(message["role"] ?? "message"))}</b>
            <span class="row-detail">{shown(start.slice(0, 160))}</span>
            <span class="soft">{sizeOf(text.length)}</span>
          </summary>
          {isOpen ? <pre>{shown(text.slice(0, mostCharacters))}</pre> : null}
          {text.length > mostCharacters ? (
            <p class="soft">{sizeOf(text.length - mostCharacters)} more are not shown here</p>
          ) : null}
        </details>
        {isPlain ? null : <Places places={places} place={place} />}
      </div>
    </li>
  );
}

/** Names the records of a message that is not one record as it is. */
function Places({ places, place }: Pick<SentProps, "places" | "place">): JSX.Element {
  return (
    <p class="places">
      {places.map(({ seq, reason, rule }, index) => (
        <span key={index} class="soft place">
          {seq === null ? null : <a href={sessionHref(place, { at: seq })}>#{seq}</a>} {shown(reason)}
          {rule == null ? "" : ` (${shown(rule)})`}
        </span>
      ))}
    </p>
  );
}
