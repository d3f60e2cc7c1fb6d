import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count, counted } from "../format.ts";
import { hrefWith } from "../router.ts";
import { LoadingRows } from "../ui/states.tsx";
import { shown } from "../ui/text.ts";
import { useVirtualList } from "../ui/virtual-list.ts";
import type { Chapters as ChapterState, PageChapter } from "./use-chapters.ts";

interface ChaptersProps {
  readonly chapters: ChapterState;
  /** Is the place of the chapter that is read; -1 before the first. */
  readonly current: number;
  readonly onJump: (seq: number) => void;
}

export function Chapters({ chapters, current, onJump }: ChaptersProps): JSX.Element {
  const { list: all, state } = chapters;
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualList({
    count: all.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 60,
    overscan: 4,
  });
  useEffect(() => {
    if (current >= 0) list.scrollToIndex(current, { align: "auto" });
  }, [current]);
  return (
    <>
      <h2 class="side-title">
        {state === "failed"
          ? "Prompts were not loaded"
          : all.length === 0 && state === "loading"
            ? "Prompts"
            : counted(all.length, "prompt")}
      </h2>
      <div class="scroll" ref={scroller}>
        {all.length === 0 && state === "loading" ? <LoadingRows rows={4} /> : null}
        {chapters.error === null ? null : <Failed error={chapters.error} reload={chapters.reload} />}
        <ol class="chapters" style={{ height: `${list.getTotalSize()}px` }}>
          {list.getVirtualItems().map(({ index, key, start }) => {
            const chapter = all[index];
            if (chapter === undefined) return null;
            return (
              <li
                key={key}
                data-index={index}
                ref={list.measureElement}
                style={{ transform: `translateY(${start}px)` }}
                aria-setsize={all.length}
                aria-posinset={index + 1}
              >
                <a
                  href={hrefWith({ at: chapter.seq })}
                  aria-current={index === current ? "true" : undefined}
                  onClick={(event) => {
                    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                    event.preventDefault();
                    onJump(chapter.seq);
                  }}
                >
                  <span class="chapter-number">{count(chapter.number)}</span>
                  <span class="chapter-title">{shown(chapter.title.replaceAll("`", ""))}</span>
                  <ChapterFacts chapter={chapter} />
                </a>
              </li>
            );
          })}
        </ol>
      </div>
    </>
  );
}

type FailedProps = Readonly<Pick<ChapterState, "reload">> & { readonly error: NonNullable<ChapterState["error"]> };

function Failed({ error, reload }: FailedProps): JSX.Element {
  return (
    <div class="pad" role="alert">
      <p class="soft">{shown(error.message)}</p>
      <button type="button" class="text-button" onClick={reload}>
        Try again
      </button>
    </div>
  );
}

function ChapterFacts({ chapter: { tools, errors, files } }: { readonly chapter: PageChapter }): JSX.Element | null {
  const facts = [...(tools > 0 ? [counted(tools, "call")] : []), ...(files > 0 ? [counted(files, "file")] : [])];
  if (facts.length === 0 && errors === 0) return null;
  return (
    <small>
      {facts.join(" · ")}
      {errors > 0 && facts.length > 0 ? " · " : null}
      {errors > 0 ? <span class="error-text">{count(errors)} failed</span> : null}
    </small>
  );
}
