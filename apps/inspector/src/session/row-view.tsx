import type { RowBadge, TranscriptRow } from "@throughline/transcript-view/internal";
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CodeLanguage, type CodeLanguages, languageOfPath, noLanguages } from "../code/code-block.tsx";
import type { SessionPlace } from "../router.ts";
import { Icon } from "../ui/icons.tsx";
import { shown } from "../ui/text.ts";
import { viewNodes } from "../ui/view-nodes.tsx";
import { CutBlocks } from "./cut-blocks.tsx";
import type { Folds } from "./folds.ts";
import type { RecordChunks, RecordView } from "./record-chunks.ts";

interface RowProps {
  readonly row: TranscriptRow;
  readonly folds: Folds;
  readonly view: RecordView;
  readonly place: SessionPlace;
  readonly chunks: RecordChunks;
}

/** Shows one row: prose as it is, everything else as a line that opens. */
export function RowView({ row, folds, view, place, chunks }: RowProps): JSX.Element {
  const { kind, title, detail, badges, fold, tree } = row;
  const cutView =
    row.resultSeq === null ? (view.rows.at(-1) === row ? view : null) : chunks.resultView(row.seq, row.resultSeq);
  const cut = cutView === null || cutView.cut.length === 0 ? null : <CutBlocks view={cutView} place={place} />;
  if (kind === "prompt" || kind === "assistant")
    return (
      <div class={`prose ${kind}`}>
        <Long name={`${row.seq}.${row.index} text`} folds={folds} most={kind === "prompt" ? 480 : 2400}>
          {viewNodes(tree)}
        </Long>
        {badges.length === 0 ? null : <p class="ends">{badges.map(badge)}</p>}
        {cut}
      </div>
    );
  const line = (
    <>
      <b>{shown(title)}</b>
      <span class="row-detail">{shown(detail)}</span>
      {badges.map(badge)}
    </>
  );
  if (fold === "none" || tree.length === 0) return <div class={`row ${kind}`}>{line}</div>;
  const isOpen = folds.isOpen(row);
  return (
    <div class={`row folds ${kind}${isOpen ? " open" : ""}`}>
      <button type="button" class="row-line" aria-expanded={isOpen} onClick={() => folds.toggle(row)}>
        <Icon name="right" />
        {line}
      </button>
      {isOpen ? (
        <div class="row-body">
          <Long name={`${row.seq}.${row.index} text`} folds={folds} most={440}>
            <CodeLanguage.Provider value={languagesOfRow(row)}>{viewNodes(tree)}</CodeLanguage.Provider>
          </Long>
          {cut}
        </div>
      ) : null}
    </div>
  );
}

/** A change is in the language of its file, and the result of a reading tool too. Other results are anything. */
function languagesOfRow({ kind, title, detail }: TranscriptRow): CodeLanguages {
  if (kind !== "tool") return noLanguages;
  const diff = languageOfPath(detail);
  return { code: /read|view/i.test(title) ? diff : "", diff };
}

function badge({ text, tone }: RowBadge): JSX.Element {
  return (
    <span key={text} class={`badge ${tone}`}>
      {shown(text)}
    </span>
  );
}

interface LongProps {
  readonly name: string;
  readonly folds: Folds;
  /** Is the height in pixels above which a text is cut, 20 lines of output. */
  readonly most: number;
  readonly children: JSX.Element["props"]["children"];
}

/** Cuts a text that is too high, and offers the rest. */
function Long({ name, folds, most, children }: LongProps): JSX.Element {
  const body = useRef<HTMLDivElement>(null);
  const [isLong, setLong] = useState(false);
  const isWhole = folds.isWhole(name);
  useLayoutEffect(() => setLong((body.current?.scrollHeight ?? 0) > most + 80));
  const isCut = isLong && !isWhole;
  return (
    <>
      <div class={`long${isCut ? " cut" : ""}`} ref={body} style={{ maxHeight: isCut ? `${most}px` : "none" }}>
        {children}
      </div>
      {isLong ? (
        <button type="button" class="text-button" onClick={() => folds.showWhole(name, !isWhole)}>
          {isWhole ? "Show less" : "Show all"}
        </button>
      ) : null}
    </>
  );
}
