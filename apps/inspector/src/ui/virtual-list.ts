import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useReducer, useState } from "preact/hooks";

type Options = VirtualizerOptions<HTMLElement, HTMLElement>;
export type List = Virtualizer<HTMLElement, HTMLElement>;

type ListOptions = Pick<Options, "count" | "getScrollElement" | "estimateSize"> & Partial<Options>;

/**
 * Scrolls as the list wants, without its correction for the height of a row where the reader has just scrolled. The
 * correction starts from the place that the list knows by the last event, and would take the reader back there.
 */
const scrollToFn: Options["scrollToFn"] = (offset, how, list) => {
  const hasMoved = Math.abs((list.scrollElement?.scrollTop ?? offset) - offset) > 1;
  if (how.adjustments === undefined || !hasMoved) elementScroll(offset, how, list);
};

/** Renders only the rows of a list that are on the screen. Each row states its place as `data-index`. */
export function useVirtualList(options: ListOptions): List {
  const [, render] = useReducer((turn: number) => turn + 1, 0);
  const whole: Options = {
    observeElementRect,
    observeElementOffset,
    scrollToFn,
    ...options,
    onChange: (list, isSync) => {
      options.onChange?.(list, isSync);
      render(undefined);
    },
  };
  const [list] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(whole));
  list.setOptions(whole);
  useEffect(() => list._didMount(), []);
  useLayoutEffect(() => list._willUpdate());
  return list;
}
