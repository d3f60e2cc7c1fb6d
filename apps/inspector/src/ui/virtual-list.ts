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

/** Renders only the rows of a list that are on the screen. Each row states its place as `data-index`. */
export function useVirtualList(options: ListOptions): List {
  const [, render] = useReducer((turn: number) => turn + 1, 0);
  const whole: Options = {
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
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
