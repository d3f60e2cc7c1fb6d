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
  const toEnd = (): void => {
    const box = scroller.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
  };
  useEffect(() => {
    if (wasAtEnd.current && isLastPart) toEnd();
  }, [count, arriving, list.getTotalSize()]);
  useEffect(() => {
    const box = scroller.current;
    if (box === null) return undefined;
    // The sizes that the list knows need no layout of the page.
    const look = (): void => {
      const height = list.scrollRect?.height ?? box.clientHeight;
      wasAtEnd.current = list.getTotalSize() - (list.scrollOffset ?? 0) - height < endPixels;
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    return () => box.removeEventListener("scroll", look);
  }, []);
  const isAtEnd = wasAtEnd.current;
  useEffect(() => {
    if (isAtEnd && isLastPart) setSeen(count);
  }, [isAtEnd, isLastPart, count]);
  return {
    unseen: isLastPart ? Math.max(0, count - seen) : 0,
    follow: () => {
      wasAtEnd.current = true;
      setSeen(count);
      list.scrollToIndex(list.options.count - 1, { align: "end" });
      requestAnimationFrame(toEnd);
    },
  };
}
