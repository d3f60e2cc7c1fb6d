import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SessionJson } from "../json.ts";
import { useKeys } from "../keys.ts";
import { hrefWith, navigate, type SessionPlace, sessionHref } from "../router.ts";
import { announce } from "../ui/announce.ts";
import { copyText } from "../ui/copy-button.tsx";
import { Icon } from "../ui/icons.tsx";
import { EmptyState, FailedState, LoadingRows } from "../ui/states.tsx";
import { Chapters } from "./chapters.tsx";
import { FindBar } from "./find-bar.tsx";
import { Folds } from "./folds.ts";
import { segmentsOf } from "./items.ts";
import type { PartialReply } from "./live/partial-reply.ts";
import { Strip } from "./map/strip.tsx";
import { TimeAxis } from "./map/time-axis.tsx";
import { ReadingPlace } from "./reading-place.ts";
import { type ListHandle, type ListNeighbors, TranscriptList } from "./transcript-list.tsx";
import { chapterAt, useChapters } from "./use-chapters.ts";
import { useFind } from "./use-find.ts";
import { useRecordChunks } from "./use-record-chunks.ts";
import { useOutline, type OutlineState } from "./use-outline.ts";

interface TranscriptProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly query: URLSearchParams;
  readonly reply: PartialReply | null;
}

export function Transcript(props: TranscriptProps): JSX.Element {
  const { loaded, reload } = useOutline(props.session, props.place, seqOfQuery(props.query) ?? 1);
  if (loaded.state === "loading") return <LoadingRows rows={10} />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  if (loaded.value.outline.count === 0 && props.reply === null)
    return (
      <EmptyState title="This session has no records yet">
        <p>They appear here as they are written.</p>
      </EmptyState>
    );
  return <TranscriptPane {...props} state={loaded.value} />;
}

function TranscriptPane(props: TranscriptProps & { readonly state: OutlineState }): JSX.Element {
  const { session, place, query, reply, state } = props;
  const { outline, version, headSeq } = state;
  const chapters = useChapters(place, session.head.lastSeq);
  const segments = useSegments(state, query.get("side") === "1", chapters.digest?.marks);
  const marks = useMemo(() => outline.onBranch(headSeq), [version, headSeq]);
  const [, render] = useState(0);
  const chunks = useRecordChunks(session, place, () => render((turn) => turn + 1));
  const asked = seqOfQuery(query);
  const [at, setAt] = useState(() => segmentFor(segments, asked ?? 1));
  const folds = useMemo(() => new Folds(() => render((turn) => turn + 1)), []);
  const list = useRef<ListHandle>(null);
  const { reading, chapter } = useReading(chapters);
  const segment = segments[Math.min(at, segments.length - 1)];
  const jump = (seq: number): void => {
    const target = segmentFor(segments, seq);
    if (target !== at) setAt(target);
    // The list of another part is rendered first.
    requestAnimationFrame(() => list.current?.jump(seq));
  };
  const find = useFind(place, outline.sessionId, query, jump);
  // A long session arrives in parts, and the record of a link may be in a later one.
  const isKnown = asked !== null && outline.lastLoaded >= Math.min(asked, outline.lastSeq);
  useEffect(() => {
    if (asked !== null && isKnown) jump(asked);
  }, [asked, isKnown]);
  useTranscriptKeys({ list, folds, find, jump, chapters, place, outline: state });
  if (segment === undefined)
    return (
      <EmptyState title="Nothing to read here">
        <p>The session holds {outline.count} records of programs and no message.</p>
      </EmptyState>
    );
  return (
    <Reader
      chapters={chapters}
      chapter={chapter}
      find={find}
      axis={<Axis {...{ session, chapters, chapter, outline, reading, jump }} />}
      strip={<Strip outline={outline} version={version} digest={chapters.digest} reading={reading} onJump={jump} />}
    >
      <Absent seq={isKnown ? asked : null} lastSeq={outline.lastSeq} />
      {chunks.failed === null ? null : <FailedState error={chunks.failed} reload={() => chunks.retry()} />}
      <TranscriptList
        key={at}
        handle={list}
        outline={outline}
        segment={segment}
        marks={marks}
        chunks={chunks}
        folds={folds}
        place={place}
        words={find.words}
        reply={reply}
        target={asked}
        chapters={chapters.list}
        neighbors={neighborsOf(segments, at, jump)}
        onTop={(seq) => reading.move(seq)}
      />
    </Reader>
  );
}

/** Says that a link names a record behind the end. The list shows the end. */
function Absent({ seq, lastSeq }: { readonly seq: number | null; readonly lastSeq: number }): JSX.Element | null {
  if (seq === null || seq <= lastSeq) return null;
  return (
    <p class="absent" role="status">
      There is no record {seq}. This session ends with record {lastSeq}.
    </p>
  );
}

function useSegments(
  { outline, version }: OutlineState,
  hasSide: boolean,
  marks: readonly number[] = [],
): ReturnType<typeof segmentsOf> {
  // Each new record brings a new digest, nearly always with the same marks.
  const names = marks.join();
  return useMemo(() => segmentsOf(outline, { hasSide, marks: new Set(marks) }), [version, hasSide, names]);
}

/** Knows where the reader is: the record at the top, and its chapter. */
function useReading({ list }: ReturnType<typeof useChapters>): {
  readonly reading: ReadingPlace;
  readonly chapter: number;
} {
  const reading = useMemo(() => new ReadingPlace(), []);
  const [chapter, setChapter] = useState(-1);
  useEffect(() => {
    const put = (seq: number): void => setChapter(chapterAt(list, seq));
    put(reading.seq);
    return reading.listen(put);
  }, [list]);
  return { reading, chapter };
}

interface AxisProps extends Pick<TranscriptProps, "session">, Pick<OutlineState, "outline"> {
  readonly chapters: ReturnType<typeof useChapters>;
  readonly chapter: number;
  readonly reading: ReadingPlace;
  readonly jump: (seq: number) => void;
}

function Axis({ session, chapters: { digest, list }, chapter, outline, reading, jump }: AxisProps): JSX.Element | null {
  if (digest === null || digest.axis === null) return null;
  // A moment has no axis: all of it would be one mark.
  if (digest.axis.buckets.length < 2) return null;
  return (
    <TimeAxis
      axis={digest.axis}
      chapters={list}
      current={chapter}
      outline={outline}
      windowTokens={session.windowTokens}
      reading={reading}
      onJump={jump}
    />
  );
}

function neighborsOf(segments: ReturnType<typeof segmentsOf>, at: number, jump: (seq: number) => void): ListNeighbors {
  const [before, after] = [segments[at - 1], segments[at + 1]];
  return {
    before: before === undefined ? null : () => jump(before.toSeq),
    after: after === undefined ? null : () => jump(after.fromSeq),
  };
}

interface ReaderProps {
  readonly chapters: ReturnType<typeof useChapters>;
  readonly chapter: number;
  readonly find: ReturnType<typeof useFind>;
  readonly axis: ComponentChildren;
  readonly strip: ComponentChildren;
  readonly children: ComponentChildren;
}

/** Has the prompts on the left and the text on the right. On a narrow screen the prompts open over the text. */
function Reader({ chapters, chapter, find, axis, strip, children }: ReaderProps): JSX.Element {
  const [areChaptersOpen, setChaptersOpen] = useState(false);
  return (
    <div class={`reader${areChaptersOpen ? " with-chapters" : ""}`}>
      <aside class="side" aria-label="Prompts">
        <Chapters chapters={chapters} current={chapter} onJump={(seq) => goTo(seq, setChaptersOpen)} />
      </aside>
      <div class="reading">
        <div class="reading-bar">
          <button
            type="button"
            class="icon-button only-narrow"
            aria-label="Prompts"
            aria-expanded={areChaptersOpen}
            onClick={() => setChaptersOpen(!areChaptersOpen)}
          >
            <Icon name="list" />
          </button>
          <FindBar find={find} />
        </div>
        {axis}
        {children}
      </div>
      {strip}
    </div>
  );
}

function goTo(seq: number, setOpen: (value: boolean) => void): void {
  setOpen(false);
  navigate(hrefWith({ at: seq }), { replace: true });
}

function seqOfQuery(query: URLSearchParams): number | null {
  const seq = Number(query.get("at"));
  return Number.isSafeInteger(seq) && seq > 0 ? seq : null;
}

function segmentFor(segments: ReturnType<typeof segmentsOf>, seq: number): number {
  const found = segments.findLastIndex(({ fromSeq }) => fromSeq <= seq);
  return Math.max(0, found);
}

interface KeyParts {
  readonly list: { readonly current: ListHandle | null };
  readonly folds: Folds;
  readonly find: ReturnType<typeof useFind>;
  readonly jump: (seq: number) => void;
  readonly chapters: ReturnType<typeof useChapters>;
  readonly place: SessionPlace;
  readonly outline: OutlineState;
}

function useTranscriptKeys({ list, folds, find, jump, chapters, place, outline }: KeyParts): void {
  const seqNow = (): number => list.current?.seqNow() ?? 1;
  const prompt = (by: 1 | -1): void => {
    const seqs = chapters.list.map(({ seq }) => seq);
    const next = by === 1 ? seqs.find((seq) => seq > seqNow()) : seqs.findLast((seq) => seq < seqNow());
    if (next !== undefined) jump(next);
  };
  const compaction = (by: 1 | -1): void => {
    const next = nextCompaction(outline, seqNow(), by);
    if (next === null) announce(by === 1 ? "No later compaction" : "No earlier compaction");
    else jump(next);
  };
  const error = (): void => {
    const next = chapters.digest?.errors.find((seq) => seq > seqNow());
    if (next === undefined) announce("No later error");
    else jump(next);
  };
  useKeys({
    e: error,
    j: () => list.current?.step(1),
    k: () => list.current?.step(-1),
    J: () => prompt(1),
    K: () => prompt(-1),
    "[": () => compaction(-1),
    "]": () => compaction(1),
    g: () => jump(1),
    G: () => list.current?.end(),
    "/": () => document.querySelector<HTMLInputElement>("#find-here")?.focus(),
    n: () => find.step(1),
    N: () => find.step(-1),
    t: () => folds.toggleAll("thinking"),
    o: () => folds.toggleAll("tool"),
    y: () => void copyText(new URL(sessionHref(place, { at: seqNow() }), location.href).href),
  });
}

function nextCompaction({ outline }: OutlineState, seq: number, by: 1 | -1): number | null {
  for (let index = outline.indexOf(seq) + by; index >= 0 && index < outline.count; index += by)
    if (outline.typeAt(index) === "compaction") return outline.seqAt(index);
  return null;
}
