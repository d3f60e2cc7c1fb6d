import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { periodOf } from "../format.ts";
import type { SessionJson } from "../json.ts";
import { useVirtualList } from "../ui/virtual-list.ts";
import { SessionLine } from "./session-line.tsx";

interface ListProps {
  /** Names the query, whose place in the list is remembered. */
  readonly name: string;
  readonly items: readonly SessionJson[];
  readonly hasMore: boolean;
  readonly onEnd: () => void;
}

type Row = { readonly period: string } | { readonly session: SessionJson; readonly place: number };

interface ListMemory {
  readonly offset: number;
  readonly key: string | null;
}

const memory = new Map<string, ListMemory>();
const lineHeight = 48;
const narrowHeight = 72;
const periodHeight = 48;

export function SessionList({ name, items, hasMore, onEnd }: ListProps): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOf(items), [items]);
  const isNarrow = useNarrow();
  // The list measures everything again when this function is another one.
  const getItemKey = useCallback((index: number) => keyOfRow(rows[index]), [rows]);
  const list = useVirtualList({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => sizeOfRow(rows[index], isNarrow),
    getItemKey,
    overscan: 6,
    initialOffset: () => memory.get(name)?.offset ?? 0,
  });
  useEffect(() => list.measure(), [isNarrow]);
  const shown = list.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= rows.length - 12) onEnd();
  }, [last, rows.length, hasMore]);
  useMemory(name, scroller);
  return (
    <div class="scroll" ref={scroller}>
      <div class="lines" role="list" aria-label="Sessions" style={{ height: `${list.getTotalSize()}px` }}>
        {shown.map(({ index, key, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const style = { transform: `translateY(${start}px)` };
          return "period" in row ? (
            <h2 key={key} class="period" role="presentation" style={style}>
              {row.period}
            </h2>
          ) : (
            <div
              key={key}
              class="line-place"
              role="listitem"
              aria-setsize={hasMore ? -1 : items.length}
              aria-posinset={row.place}
              style={style}
            >
              <SessionLine session={row.session} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

const narrow = matchMedia("(max-width: 720px)");

/** Says whether a line has two rows of text, also when the window gets another width. */
function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const change = (): void => setNarrow(narrow.matches);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  return isNarrow;
}

function sizeOfRow(row: Row | undefined, isNarrow: boolean): number {
  if (row !== undefined && "period" in row) return periodHeight;
  return isNarrow ? narrowHeight : lineHeight;
}

function keyOfRow(row: Row | undefined): string {
  if (row === undefined) return "";
  return "period" in row
    ? `period ${row.period}`
    : `${row.session.agentId} ${row.session.key} ${row.session.sessionId}`;
}

function rowsOf(items: readonly SessionJson[]): readonly Row[] {
  const rows: Row[] = [];
  let period = "";
  for (const [index, session] of items.entries()) {
    const own = periodOf(session.updatedAtMs);
    if (own !== period) rows.push({ period: own });
    period = own;
    rows.push({ session, place: index + 1 });
  }
  return rows;
}

/** Puts the focus back on the line that was opened, and remembers where the list stands when it goes. */
function useMemory(name: string, scroller: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const { key } = memory.get(name) ?? { key: null };
    if (key !== null) lineOf(scroller.current, key)?.focus({ preventScroll: true });
    const element = scroller.current;
    let offset = element?.scrollTop ?? 0;
    const note = (): void => {
      offset = element?.scrollTop ?? 0;
    };
    let opened: string | null = null;
    const open = (event: Event): void => {
      const line = event.target instanceof Element ? event.target.closest<HTMLElement>("a.line") : null;
      opened = line?.dataset["key"] ?? null;
    };
    element?.addEventListener("scroll", note, { passive: true });
    element?.addEventListener("click", open);
    return () => {
      element?.removeEventListener("scroll", note);
      element?.removeEventListener("click", open);
      memory.set(name, { offset, key: opened });
    };
  }, [name]);
}

function lineOf(element: HTMLElement | null, key: string): HTMLElement | null {
  return element?.querySelector<HTMLElement>(`a.line[data-key="${CSS.escape(key)}"]`) ?? null;
}
