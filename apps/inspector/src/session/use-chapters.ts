import { useEffect, useState } from "preact/hooks";
import { type ApiError, getJson, isAbort } from "../api.ts";
import type { DigestJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
import { errorOf } from "../use-load.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

/** A prompt, and what happened until the next one. */
export interface PageChapter {
  readonly number: number;
  readonly seq: number;
  readonly title: string;
  readonly tools: number;
  readonly errors: number;
  readonly files: number;
}

export interface Chapters {
  readonly list: readonly PageChapter[];
  readonly state: "loading" | "done" | "failed";
  readonly digest: DigestJson | null;
  readonly error: ApiError | null;
  readonly reload: () => void;
}

/** Loads the chapters from the digest, again whenever the session has more records. */
export function useChapters(place: SessionPlace, lastSeq: number): Chapters {
  const [turn, setTurn] = useState(0);
  const [chapters, setChapters] = useState<Omit<Chapters, "reload">>(none);
  useEffect(() => {
    const stop = new AbortController();
    getJson<DigestJson>(sessionPath(place, "/digest"), placeQuery(place), stop.signal).then(
      (digest) => {
        if (!stop.signal.aborted) setChapters({ list: chaptersOf(digest), state: "done", digest, error: null });
      },
      (error: unknown) => {
        if (isAbort(error) || stop.signal.aborted) return;
        setChapters((known) => ({ ...known, state: "failed", error: errorOf(error) }));
      },
    );
    return () => stop.abort();
  }, [lastSeq, turn]);
  return { ...chapters, reload: () => setTurn((at) => at + 1) };
}

const none: Omit<Chapters, "reload"> = { list: [], state: "loading", digest: null, error: null };

function chaptersOf({ prompts }: DigestJson): readonly PageChapter[] {
  return prompts.map(({ seq, text, tools, errors, files }, index) => {
    return { number: index + 1, seq, title: text, tools, errors, files };
  });
}

/** Returns the place of the chapter that a record belongs to; -1 before the first. */
export function chapterAt(chapters: readonly PageChapter[], seq: number): number {
  return chapters.findLastIndex((chapter) => chapter.seq <= seq);
}
