import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sizeOf } from "../format.ts";
import type { SessionPlace } from "../router.ts";
import { shown } from "../ui/text.ts";
import { errorOf } from "../use-load.ts";
import { ImageBlock } from "./image-block.tsx";
import { type BlockProps, readBlock } from "./read-block.ts";
import type { RecordView } from "./record-chunks.ts";

/** Offers the rest of blocks of which the server sent the start, in steps of 256 KiB. */
export function CutBlocks({ view, place }: { readonly view: RecordView; readonly place: SessionPlace }): JSX.Element {
  return (
    <>
      {view.cut.map(({ block, totalBytes, isImage }) =>
        block !== null && isImage ? (
          <ImageBlock key={block} id={view.id} block={block} totalBytes={totalBytes} place={place} />
        ) : block === null ? (
          <p key="beside" class="soft">
            {sizeOf(totalBytes)} beside the content are cut.
          </p>
        ) : (
          <CutBlock key={block} id={view.id} block={block} totalBytes={totalBytes} place={place} />
        ),
      )}
    </>
  );
}

function CutBlock({ id, block, totalBytes, place }: BlockProps): JSX.Element {
  const [parts, setParts] = useState<readonly string[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [problem, setProblem] = useState("");
  const more = (): void => {
    readBlock({ id, block, place }, next ?? 0).then(
      (part) => {
        setProblem("");
        setParts((known) => [...known, part.text]);
        setNext(part.nextFrom);
      },
      (error: unknown) => setProblem(errorOf(error).message),
    );
  };
  return (
    <div class="cut-block">
      {parts.length === 0 ? null : (
        <pre>
          {parts.map((part, index) => (
            <span key={index}>{shown(part)}</span>
          ))}
        </pre>
      )}
      {next === null ? null : (
        <button type="button" class="text-button" onClick={more}>
          {parts.length === 0 ? `Load all ${sizeOf(totalBytes)} of this text` : `Load more of ${sizeOf(totalBytes)}`}
        </button>
      )}
      {problem === "" ? null : <p class="error-text">{problem}</p>}
    </div>
  );
}
