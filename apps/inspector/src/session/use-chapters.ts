import { useEffect, useState } from "preact/hooks";
import { getJson, isAbort } from "../api.ts";
import type { DigestJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
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
}

/** Loads the chapters from the digest, again whenever the session has more records. */
export function useChapters(place: SessionPlace, lastSeq: number): Chapters {
  const [chapters, setChapters] = useState<Chapters>({ list: [], state: "loading", digest: null });
  useEffect(() => {
    const stop = new AbortController();
    getJson<DigestJson>(sessionPath(place, "/digest"), placeQuery(place), stop.signal).then(
      (digest) => {
        if (!stop.signal.aborted) setChapters({ list: chaptersOf(digest), state: "done", digest });
      },
      (error: unknown) => {
        if (!isAbort(error) && !stop.signal.aborted) setChapters((known) => ({ ...known, state: "failed" }));
      },
    );
    return () => stop.abort();
  }, [lastSeq]);
  return chapters;
}

function chaptersOf({ prompts }: DigestJson): readonly PageChapter[] {
  return prompts.map(({ seq, text, tools, errors, files }, index) => {
    return { number: index + 1, seq, title: text, tools, errors, files };
  });
}

/** Returns the place of the chapter that a record belongs to; -1 before the first. */
export function chapterAt(chapters: readonly PageChapter[], seq: number): number {
  return chapters.findLastIndex((chapter) => chapter.seq <= seq);
}
