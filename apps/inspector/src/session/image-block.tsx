import { imageTypeOf } from "@throughline/transcript-view/internal";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { sizeOf } from "../format.ts";
import { errorOf } from "../use-load.ts";
import { type BlockProps, readBlock } from "./read-block.ts";

const mostBytes = 10 * 1024 * 1024;

type ImageState =
  | { readonly name: "idle" }
  | { readonly name: "loading"; readonly share: number }
  | { readonly name: "shown"; readonly address: string; readonly type: string }
  | { readonly name: "failed"; readonly problem: string };

/** Shows an image once its reader asks for it. Its bytes come from the record, and never from another address. */
export function ImageBlock(props: BlockProps): JSX.Element {
  const bytes = Math.floor((props.totalBytes * 3) / 4);
  const [state, setState] = useState<ImageState>({ name: "idle" });
  const stop = useRef(new AbortController());
  const address = state.name === "shown" ? state.address : null;
  useEffect(() => () => stop.current.abort(), []);
  useEffect(() => (address === null ? undefined : () => URL.revokeObjectURL(address)), [address]);
  if (bytes > mostBytes) return <p class="soft">The image has {sizeOf(bytes)}. The page shows images up to 10 MB.</p>;
  if (state.name === "shown")
    return <img class="record-image" src={state.address} alt={`Image, ${state.type}, ${sizeOf(bytes)}`} />;
  const load = (): void => {
    const { signal } = stop.current;
    setState({ name: "loading", share: 0 });
    loadImage(props, signal, (share) => setState({ name: "loading", share })).then(
      (found) => setState(found),
      (error: unknown) => {
        if (!signal.aborted) setState({ name: "failed", problem: errorOf(error).message });
      },
    );
  };
  return (
    <div class="cut-block">
      <button type="button" class="text-button" disabled={state.name === "loading"} onClick={load}>
        {state.name === "loading" ? `Loading ${Math.round(state.share * 100)} %` : `Show the image, ${sizeOf(bytes)}`}
      </button>
      {state.name === "failed" ? <p class="error-text">{state.problem}</p> : null}
    </div>
  );
}

/** Only the first bytes decide what an image is. What a record says of itself does not count. */
async function loadImage(
  props: BlockProps,
  signal: AbortSignal,
  onShare: (share: number) => void,
): Promise<ImageState> {
  const parts: string[] = [];
  for (let from: number | null = 0; from !== null;) {
    const part = await readBlock(props, from, signal);
    parts.push(part.text);
    from = part.nextFrom;
    onShare((from ?? part.totalBytes) / part.totalBytes);
  }
  const base64 = parts.join("");
  const type = imageTypeOf(base64);
  if (type === null) return { name: "failed", problem: "This is no PNG, JPEG, GIF or WebP." };
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return { name: "shown", address: URL.createObjectURL(new Blob([bytes], { type })), type };
}
