import type { TranscriptRow } from "@throughline/transcript-view/internal";
import { type ComponentChildren, Fragment, type JSX } from "preact";
import { type SessionPlace, sessionHref } from "../router.ts";
import type { Folds } from "./folds.ts";
import type { RecordChunks, RecordView } from "./record-chunks.ts";
import { RowView } from "./row-view.tsx";

interface PlainRecordsProps {
  readonly chunks: RecordChunks;
  readonly folds: Folds;
  readonly place: SessionPlace;
  readonly from: number;
  readonly to: number;
  /** Returns what stands under a row. */
  readonly under?: (row: TranscriptRow, view: RecordView) => ComponentChildren;
}

/** Shows the records between two as articles, all of them at once. */
export function PlainRecords({ chunks, folds, place, from, to, under }: PlainRecordsProps): JSX.Element {
  const seqs = Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
  return (
    <>
      {seqs.map((seq) => {
        const view = chunks.view(seq);
        if (view === undefined || view.rows.length === 0) return null;
        const [first] = view.rows;
        const who = first?.kind === "prompt" ? "User" : first?.speaker == null ? "Record" : "Assistant";
        return (
          <article key={seq} class="plain-item">
            <h2>
              {who} <a href={sessionHref(place, { at: seq })}>#{seq}</a>
            </h2>
            {view.rows.map((row) => (
              <Fragment key={row.index}>
                <RowView row={row} folds={folds} view={view} place={place} chunks={chunks} />
                {under?.(row, view)}
              </Fragment>
            ))}
          </article>
        );
      })}
    </>
  );
}
