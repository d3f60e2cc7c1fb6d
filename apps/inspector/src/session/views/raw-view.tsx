import type { JSX } from "preact";
import { getJson } from "../../api.ts";
import { count, sizeOf } from "../../format.ts";
import type { RecordJson, RecordsJson, SessionJson } from "../../json.ts";
import { hrefWith, sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";

interface RawProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly query: URLSearchParams;
}

interface LineJson extends RecordJson {
  readonly source?: string;
  readonly sourceBase64?: string;
}

const pageRecords = 50;
const mostCharacters = 20_000;

/** Shows records as they are kept: the line, its size, its place, its id and its checksum. */
export function RawView({ session, place, query }: RawProps): JSX.Element {
  const { lastSeq } = session.head;
  const asked = Math.min(lastSeq, Math.max(1, Math.trunc(Number(query.get("at"))) || 1));
  const from = Math.floor((asked - 1) / pageRecords) * pageRecords + 1;
  const to = Math.min(lastSeq, from + pageRecords - 1);
  const { loaded, reload } = useLoad<RecordsJson>(`raw ${from} ${to}`, (signal) => {
    const bounds = { after: from - 1, before: to + 1, limit: pageRecords, payload: "source" };
    return getJson(sessionPath(place, "/records"), { ...placeQuery(place), ...bounds }, signal);
  });
  if (lastSeq === 0) return <EmptyState title="This session has no records yet" />;
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  return (
    <div class="view-page raw">
      <nav class="pages" aria-label="Pages">
        {from > 1 ? <a href={hrefWith({ at: Math.max(1, from - pageRecords) })}>Earlier</a> : null}
        <span>
          Records {count(from)} to {count(to)} of {count(lastSeq)}
        </span>
        {to < lastSeq ? <a href={hrefWith({ at: to + 1 })}>Later</a> : null}
      </nav>
      <ol>
        {loaded.value.items.map((line) => (
          <Line key={line.seq} line={line} place={place} />
        ))}
      </ol>
    </div>
  );
}

function Line({ line, place }: { readonly line: LineJson; readonly place: SessionPlace }): JSX.Element {
  const { seq, id, type, bytes, crc, source, sourceBase64, record } = line;
  const text = source ?? sourceBase64 ?? JSON.stringify(record);
  const isCut = text.length > mostCharacters;
  return (
    <li>
      <a href={sessionHref(place, { at: seq })}>#{seq}</a>
      <details>
        <summary>
          <b>{shown(type)}</b>{" "}
          <span class="soft">
            {shown(id)} · {sizeOf(bytes)} · {crc === null ? "no checksum" : `crc ${crc.toString(16).padStart(8, "0")}`}
            {sourceBase64 === undefined ? "" : " · not text, as base64"}
          </span>
        </summary>
        <pre>{shown(text.slice(0, mostCharacters))}</pre>
        {isCut ? <p class="soft">{sizeOf(text.length - mostCharacters)} more are not shown</p> : null}
      </details>
    </li>
  );
}
