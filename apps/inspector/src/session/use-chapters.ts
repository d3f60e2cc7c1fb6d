import { useMemo, useRef } from "preact/hooks";
import { type ApiError, getJson } from "../api.ts";
import type { DigestJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
import { useFollowed } from "../use-load.ts";
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
  const { loaded, reload } = useFollowed<DigestJson>(lastSeq, (signal) =>
    getJson(sessionPath(place, "/digest"), placeQuery(place), signal),
  );
  // The page keeps the last chapters while the server is away.
  const known = useRef<DigestJson | null>(null);
  if (loaded.state === "done") known.current = loaded.value;
  const digest = known.current;
  const list = useMemo(() => (digest === null ? [] : chaptersOf(digest)), [digest]);
  return { list, state: loaded.state, digest, error: loaded.state === "failed" ? loaded.error : null, reload };
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
