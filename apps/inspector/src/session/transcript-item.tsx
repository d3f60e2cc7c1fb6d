import type { TranscriptRow } from "@throughline/transcript-view/internal";
import { Fragment, type JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { clockOf, momentOf } from "../format.ts";
import { sessionHref, type SessionPlace } from "../router.ts";
import { shown } from "../ui/text.ts";
import type { Folds } from "./folds.ts";
import type { RecordChunks, RecordView } from "./record-chunks.ts";
import { RowView } from "./row-view.tsx";
import type { SessionOutline } from "./session-outline.ts";
import { SubAgents } from "./sub-agents.tsx";

interface ItemProps {
  readonly index: number;
  readonly total: number;
  readonly start: number;
  readonly size: number;
  readonly measure: (element: HTMLElement | null) => void;
  /** Are places in the outline: of the record, and of the one shown before it. */
  readonly at: number;
  readonly before: number | null;
  readonly isTarget: boolean;
  readonly chapter: number | null;
  readonly outline: SessionOutline;
  readonly marks: Uint8Array;
  readonly chunks: RecordChunks;
  readonly folds: Folds;
  readonly place: SessionPlace;
}

/** Shows one record with all its rows. */
export function TranscriptItem(props: ItemProps): JSX.Element {
  const { index, total, start, size, measure, at, before, isTarget, outline, marks, chunks } = props;
  const seq = outline.seqAt(at);
  const view = chunks.view(seq);
  const isOff = marks[at] === 0;
  const wasOff = before !== null && marks[before] === 0;
  // The list renders at every step of the wheel. The same node is not compared again.
  const body = useMemo(
    () => (view === undefined ? null : <Rows {...props} view={view} seq={seq} />),
    [view, seq, before, props.folds.version, props.chapter],
  );
  const lastHeight = useRef(size);
  if (view !== undefined) lastHeight.current = size;
  return (
    <article
      class={`item${isOff ? " off" : ""}${isTarget ? " target" : ""}`}
      data-index={index}
      data-seq={seq}
      ref={measure}
      tabIndex={-1}
      aria-posinset={index + 1}
      aria-setsize={total}
      aria-label={`Record ${seq}`}
      style={{ transform: `translateY(${start}px)` }}
    >
      {isOff === wasOff ? null : (
        <p class="branch-mark">
          {isOff ? "Another branch: the conversation left these messages" : "Back on the current branch"}
        </p>
      )}
      {body ?? <div class="bone-item" style={{ height: `${Math.max(32, lastHeight.current - 8)}px` }} />}
    </article>
  );
}

function Rows({ view, seq, ...props }: ItemProps & { readonly view: RecordView; readonly seq: number }): JSX.Element {
  const { outline, before, folds, place, chapter } = props;
  const { rows } = view;
  const first = rows[0];
  const isNew = first !== undefined && needsHead(first, outline, before);
  return (
    <>
      {isNew && first !== undefined ? <ItemHead row={first} seq={seq} chapter={chapter} place={place} /> : null}
      {rows.map((row) => (
        <Fragment key={row.index}>
          <RowView row={row} folds={folds} view={view} place={place} chunks={props.chunks} />
          <SubAgents row={row} view={view} folds={folds} />
        </Fragment>
      ))}
    </>
  );
}

/** Records of the same speaker stand under one head. */
function needsHead(row: TranscriptRow, outline: SessionOutline, before: number | null): boolean {
  if (row.kind === "prompt") return true;
  if (row.speaker === null) return false;
  return before === null || outline.roleAt(before) !== "assistant";
}

type HeadProps = Pick<ItemProps, "place"> & {
  readonly row: TranscriptRow;
  readonly seq: number;
  readonly chapter: number | null;
};

function ItemHead({ row, seq, chapter, place }: HeadProps): JSX.Element {
  const isPrompt = row.kind === "prompt";
  return (
    <header class={`item-head${isPrompt ? " of-prompt" : ""}`}>
      <b>{isPrompt ? "User" : "Assistant"}</b>
      {row.speaker === null || row.speaker === "" ? null : <span>{shown(row.speaker)}</span>}
      {chapter === null ? null : <span>prompt {chapter}</span>}
      <span class="item-place">
        <time title={momentOf(row.tsMs)}>{clockOf(row.tsMs)}</time>
        <a href={sessionHref(place, { at: seq })} title="Link to this record">
          #{seq}
        </a>
      </span>
    </header>
  );
}
