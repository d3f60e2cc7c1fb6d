import type { TranscriptRow } from "@throughline/transcript-view/internal";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { count } from "../format.ts";
import type { SessionJson } from "../json.ts";
import { hrefWith, type SessionPlace } from "../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../ui/states.tsx";
import { Folds } from "./folds.ts";
import { PlainRecords } from "./plain-records.tsx";
import type { RecordView } from "./record-chunks.ts";
import { SubAgents } from "./sub-agents.tsx";
import { useRecordChunks } from "./use-record-chunks.ts";

interface PlainProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly query: URLSearchParams;
}

const pageRecords = 200;

/** Shows the transcript in pages of 200 records, without a list that changes under the reader. */
export function PlainTranscript({ session, place, query }: PlainProps): JSX.Element {
  const [, render] = useState(0);
  const change = (): void => render((turn) => turn + 1);
  const chunks = useRecordChunks(session, place, change);
  const folds = useMemo(() => new Folds(change), []);
  const { lastSeq } = session.head;
  const asked = Number(query.get("at"));
  const from = Math.floor((Math.min(lastSeq, Math.max(1, asked || 1)) - 1) / pageRecords) * pageRecords + 1;
  const to = Math.min(lastSeq, from + pageRecords - 1);
  useEffect(() => chunks.want(from, to));
  if (lastSeq === 0) return <EmptyState title="This session has no records yet" />;
  if (chunks.failed !== null) return <FailedState error={chunks.failed} reload={() => chunks.retry()} />;
  if (chunks.view(from) === undefined) return <LoadingRows rows={10} />;
  const under = (row: TranscriptRow, view: RecordView): JSX.Element => (
    <SubAgents row={row} view={view} folds={folds} />
  );
  return (
    <div class="plain-page">
      <Pages name="Pages" from={from} to={to} lastSeq={lastSeq} />
      <PlainRecords chunks={chunks} folds={folds} place={place} from={from} to={to} under={under} />
      <Pages name="Pages, below" from={from} to={to} lastSeq={lastSeq} />
    </div>
  );
}

interface PagesProps {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly lastSeq: number;
}

function Pages({ name, from, to, lastSeq }: PagesProps): JSX.Element {
  return (
    <nav class="pages" aria-label={name}>
      {from > 1 ? <a href={hrefWith({ at: from - pageRecords })}>Earlier</a> : null}
      <span>
        Records {count(from)} to {count(to)} of {count(lastSeq)}
      </span>
      {to < lastSeq ? <a href={hrefWith({ at: to + 1 })}>Later</a> : null}
    </nav>
  );
}
