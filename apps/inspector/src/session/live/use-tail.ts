import { useEffect, useRef, useState } from "preact/hooks";
import type { List } from "../../ui/virtual-list.ts";

interface TailOptions {
  readonly list: List;
  readonly scroller: { readonly current: HTMLElement | null };
  /** Counts the records of the list, and changes with each that arrives. */
  readonly count: number;
  /** Is the length of the text that is being written. */
  readonly arriving: number;
  /** Is false while later records are in another part of the session. */
  readonly isLastPart: boolean;
}

export interface Tail {
  /** Counts the records that arrived below what the reader has seen. */
  readonly unseen: number;
  readonly follow: () => void;
}

/** Is the distance in pixels from the end within which a reader is at the end. */
const endPixels = 120;

/** Stays at the end of a list while the reader is there, and counts what arrives while the reader is elsewhere. */
export function useTail({ list, scroller, count, arriving, isLastPart }: TailOptions): Tail {
  const [seen, setSeen] = useState(count);
  const wasAtEnd = useRef(false);
  // A list that grows takes no reader away from its end. Only a reader above the last end that was reached has left it.
  const lastEnd = useRef(0);
  const look = (offset: number, end: number): void => {
    if (end - offset < endPixels) {
      wasAtEnd.current = true;
      lastEnd.current = end;
    } else if (offset <= Math.min(lastEnd.current, end) - endPixels) wasAtEnd.current = false;
  };
  const stayAtEnd = (): void => {
    const box = scroller.current;
    if (box === null || !wasAtEnd.current) return;
    const end = box.scrollHeight - box.clientHeight;
    // The reader may have scrolled since the last `scroll` event.
    look(box.scrollTop, end);
    if (!wasAtEnd.current) return;
    box.scrollTop = end;
    lastEnd.current = end;
  };
  useEffect(() => {
    if (isLastPart) stayAtEnd();
  }, [count, arriving, list.getTotalSize()]);
  useEffect(() => {
    const box = scroller.current;
    if (box === null) return undefined;
    // The sizes that the list knows need no layout of the page.
    const lookAtList = (): void =>
      look(list.scrollOffset ?? 0, list.getTotalSize() - (list.scrollRect?.height ?? box.clientHeight));
    lookAtList();
    box.addEventListener("scroll", lookAtList, { passive: true });
    return () => box.removeEventListener("scroll", lookAtList);
  }, []);
  const isAtEnd = wasAtEnd.current;
  useEffect(() => {
    // A reader who went up since this was rendered has not seen what arrived.
    if (wasAtEnd.current && isLastPart) setSeen(count);
  }, [isAtEnd, isLastPart, count]);
  return {
    unseen: isLastPart ? Math.max(0, count - seen) : 0,
    follow: () => {
      wasAtEnd.current = true;
      // On the way down the reader has not left the end.
      lastEnd.current = scroller.current?.scrollTop ?? 0;
      setSeen(count);
      list.scrollToIndex(list.options.count - 1, { align: "end" });
      requestAnimationFrame(stayAtEnd);
    },
  };
}
