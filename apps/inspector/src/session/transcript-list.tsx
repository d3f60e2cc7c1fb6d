import type { JSX } from "preact";
import { useEffect, useImperativeHandle, useMemo, useRef } from "preact/hooks";
import { count } from "../format.ts";
import type { SessionPlace } from "../router.ts";
import { type List, useVirtualList } from "../ui/virtual-list.ts";
import type { Folds } from "./folds.ts";
import { itemOf, type Segment } from "./items.ts";
import { PartialItem } from "./live/partial-item.tsx";
import type { PartialReply } from "./live/partial-reply.ts";
import { type Tail, useTail } from "./live/use-tail.ts";
import { markWords } from "./mark-words.ts";
import type { RecordChunks } from "./record-chunks.ts";
import type { SessionOutline } from "./session-outline.ts";
import { TranscriptItem } from "./transcript-item.tsx";
import type { PageChapter } from "./use-chapters.ts";

export interface ListHandle {
  /** Puts a record at the top, and the focus on it. */
  jump(seq: number): void;
  step(by: 1 | -1): void;
  end(): void;
  /** Returns the record that has the focus, else the one at the top. */
  seqNow(): number;
}

/** Open the parts of the session before and after this one; null without one. */
export interface ListNeighbors {
  readonly before: (() => void) | null;
  readonly after: (() => void) | null;
}

interface ListProps {
  readonly handle: { current: ListHandle | null };
  readonly outline: SessionOutline;
  readonly segment: Segment;
  readonly marks: Uint8Array;
  readonly chunks: RecordChunks;
  readonly folds: Folds;
  readonly place: SessionPlace;
  readonly words: string;
  /** Is the record that the address names. */
  readonly target: number | null;
  readonly chapters: readonly PageChapter[];
  readonly neighbors: ListNeighbors;
  /** Is the reply that is being written; null without one. */
  readonly reply: PartialReply | null;
  readonly onTop: (seq: number) => void;
}

const settleMs = 100;

export function TranscriptList(props: ListProps): JSX.Element {
  const { outline, segment, chunks, neighbors, target, words } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const { items, heights } = segment;
  const seqAt = (index: number): number => outline.seqAt(items[index] ?? 0);
  const reply = arrivingReply(props);
  const list = useVirtualList({
    count: items.length + (reply === null ? 0 : 1),
    getScrollElement: () => scroller.current,
    estimateSize: (index) => heights[index] ?? replyHeight,
    overscan: 4,
    paddingStart: neighbors.before === null ? 24 : 72,
    paddingEnd: neighbors.after === null ? 96 : 120,
    scrollPaddingStart: 16,
  });
  const rows = list.getVirtualItems();
  const [first, last] = [rows[0]?.index ?? 0, Math.min(items.length - 1, rows.at(-1)?.index ?? 0)];
  const focus = useFocus(scroller);
  useWanted(chunks, seqAt(first), seqAt(last), list.isScrolling);
  useHandle(props, list, focus);
  const tail = useTail({
    list,
    scroller,
    count: items.length,
    arriving: reply?.text.length ?? 0,
    isLastPart: neighbors.after === null,
  });
  const top = topOf(list);
  useEffect(() => props.onTop(seqAt(top)), [top, segment]);
  useEffect(() => markWords(scroller.current, words));
  const chapterOf = useMemo(() => new Map(props.chapters.map(({ seq, number }) => [seq, number])), [props.chapters]);
  return (
    <>
      <div class="scroll" ref={scroller} tabIndex={-1}>
        <div class="feed" role="feed" aria-label="Transcript" style={{ height: `${list.getTotalSize()}px` }}>
          <Neighbors neighbors={neighbors} toSeq={segment.toSeq} height={list.getTotalSize()} />
          {rows.map(({ index, key, start, size }) => {
            const shared = { index, start, measure: list.measureElement };
            if (index === items.length)
              return reply === null ? null : <PartialItem key="arriving" reply={reply} {...shared} />;
            return (
              <TranscriptItem
                key={key}
                total={items.length}
                size={size}
                at={items[index] ?? 0}
                before={index === 0 ? null : (items[index - 1] ?? null)}
                isTarget={seqAt(index) === target}
                chapter={chapterOf.get(seqAt(index)) ?? null}
                {...shared}
                {...props}
              />
            );
          })}
        </div>
      </div>
      <Unseen tail={tail} />
    </>
  );
}

function Unseen({ tail: { unseen, follow } }: { readonly tail: Tail }): JSX.Element | null {
  if (unseen === 0) return null;
  return (
    <button type="button" class="button primary unseen" onClick={follow}>
      {count(unseen)} new ↓
    </button>
  );
}

interface NeighborsProps {
  readonly neighbors: ListNeighbors;
  readonly toSeq: number;
  readonly height: number;
}

function Neighbors({ neighbors: { before, after }, toSeq, height }: NeighborsProps): JSX.Element {
  return (
    <>
      {before === null ? null : (
        <button type="button" class="button part" onClick={before}>
          Earlier records
        </button>
      )}
      {after === null ? null : (
        <button type="button" class="button part" style={{ top: `${height - 96}px` }} onClick={after}>
          Later records, from {count(toSeq + 1)}
        </button>
      )}
    </>
  );
}

const replyHeight = 104;

/** Leaves the reply out once its record is on the page, and where later records are in another part. */
function arrivingReply({ reply, chunks, neighbors }: ListProps): PartialReply | null {
  if (reply === null || neighbors.after !== null) return null;
  return reply.untilSeq !== null && chunks.view(reply.untilSeq) !== undefined ? null : reply;
}

function useHandle({ handle, outline, segment }: ListProps, list: List, focus: Focus): void {
  const { items } = segment;
  const seqAt = (index: number): number => outline.seqAt(items[index] ?? 0);
  const move = (index: number): void => {
    focus.want(seqAt(index));
    list.scrollToIndex(index, { align: "start" });
  };
  useImperativeHandle(handle, () => ({
    jump: (seq) => move(itemOf(outline, segment, seq)),
    step: (by) => {
      const seq = focus.seq();
      const at = seq === null ? topOf(list) : itemOf(outline, segment, seq) + by;
      move(Math.max(0, Math.min(items.length - 1, at)));
    },
    end: () => {
      focus.want(seqAt(items.length - 1));
      list.scrollToIndex(items.length - 1, { align: "end" });
    },
    seqNow: () => focus.seq() ?? seqAt(topOf(list)),
  }));
}

function topOf(list: List): number {
  const offset = (list.scrollOffset ?? 0) + 32;
  return list.getVirtualItemForOffset(offset)?.index ?? 0;
}

/** Loads what is on the screen: at once when the list stands still, and while it moves once it slows down. */
function useWanted(chunks: RecordChunks, fromSeq: number, toSeq: number, isScrolling: boolean): void {
  useEffect(() => {
    if (!isScrolling) {
      chunks.want(fromSeq, toSeq);
      return undefined;
    }
    const timer = setTimeout(() => chunks.want(fromSeq, toSeq), settleMs);
    return () => clearTimeout(timer);
  });
}

interface Focus {
  readonly seq: () => number | null;
  readonly want: (seq: number) => void;
}

/** Keeps the focus on a record, also when its row was not there yet. */
function useFocus(scroller: { readonly current: HTMLElement | null }): Focus {
  const wanted = useRef<number | null>(null);
  useEffect(() => {
    const seq = wanted.current;
    if (seq === null) return;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-seq="${seq}"]`);
    if (row === null || row === undefined) return;
    wanted.current = null;
    row.focus({ preventScroll: true });
  });
  return {
    seq: () => {
      if (wanted.current !== null) return wanted.current;
      const row = document.activeElement?.closest<HTMLElement>("[data-seq]") ?? null;
      return row === null ? null : Number(row.dataset["seq"]);
    },
    want: (seq) => void (wanted.current = seq),
  };
}
