import { EndAnchor } from "./end-anchor.ts";
import { openIfThere, withFileErrors } from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import { framedLines } from "./framed-lines.ts";
import { createSlices } from "./slices.ts";
import { findBase, type TranscriptFileOptions, type TranscriptLook } from "./find-base.ts";
import type { TranscriptBase } from "./transcript-base.ts";
import { Transcript } from "./transcript.ts";

/** An image of a transcript that was made beside the one its session is known by. */
export interface ReadAside {
  readonly facts: FileFacts;
  readonly transcript: Transcript;
  readonly anchor: EndAnchor;
}

/** A shorter file is read where it is wanted: that holds nobody up. */
export const minAsideBytes: number = 4 * 1024 * 1024;

/**
 * Reads a transcript with nothing locked, in slices: what takes seconds must not be read while a session is held, nor in
 * one go. Null when there is no such file.
 * @throws {ThroughlineError} STORE_IO, PATH_UNSAFE
 */
export async function readAside(options: TranscriptFileOptions, look: TranscriptLook): Promise<ReadAside | null> {
  const { files } = options;
  const handle = openIfThere(files, look.path);
  if (handle === null) return null;
  try {
    const facts = withFileErrors(look.path, () => files.factsOf(handle));
    const end = EndAnchor.read(files, handle, facts.sizeBytes, facts);
    const base = findBase({ files, handle, sizeBytes: facts.sizeBytes }, facts, look);
    const file = { handle, facts };
    const transcript =
      (await readFrom(base, false, file, options, look)) ?? (await readFrom(null, true, file, options, look));
    // A write that failed was taken back meanwhile, and another may be in its place: of some line each half was read.
    const isStill = withFileErrors(look.path, () => end.isThere(files, handle));
    if (transcript === null || !isStill) return null;
    return { facts, transcript, anchor: EndAnchor.read(files, handle, transcript.endBytes, facts) };
  } finally {
    files.close(handle);
  }
}

/** Null when it must be read with other programs in mind. */
async function readFrom(
  base: TranscriptBase | null,
  isMixed: boolean,
  { handle, facts }: { readonly handle: number; readonly facts: FileFacts },
  { files, codec, nowMs, warm, maxLineBytes }: TranscriptFileOptions,
  { path, owner, savedHead, acknowledgedSeq: askSeq }: TranscriptLook,
): Promise<Transcript | null> {
  const acknowledgedSeq = (): number => askSeq?.(facts.identity) ?? 0;
  const options = { owner, codec, path, warm, nowMs, maxLineBytes, isMixed, acknowledgedSeq };
  const transcript = new Transcript(options, savedHead, base);
  const span = { from: transcript.endBytes, to: facts.sizeBytes, maxLineBytes };
  const slices = createSlices();
  transcript.beginScan();
  for (const lines of framedLines({ files, handle, path, ...span })) {
    if (!transcript.feed(lines)) return null;
    await slices.next();
  }
  transcript.finishScan(() => files.factsOf(handle).sizeBytes > facts.sizeBytes);
  return transcript;
}
