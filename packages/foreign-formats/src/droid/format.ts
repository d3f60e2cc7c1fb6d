import type { Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat, type FormatMatch } from "../foreign-format.ts";
import { matchOfLines } from "../sample-lines.ts";
import { createDroidReader } from "./read-droid.ts";

const sessionFile = /^[0-9a-fA-F-]{32,36}\.jsonl$/;

/** The format covers sessions of Factory's Droid: `sessions/<folder>/<session id>.jsonl`. */
export const droidFormat: ForeignFormat = {
  name: "droid",
  program: "Droid",
  layout: () => fileOfLines,
  places: [
    {
      variables: [],
      home: "",
      // The pattern starts at the program's own folder, because OpenClaw has files of these names below its agents.
      files: [
        [".factory", "sessions", /^[^.]/, sessionFile],
        [".factory", "sessions", sessionFile],
      ],
    },
  ],
  detect: (sample) => matchOfLines(sample, matchOf),
  createReader: createDroidReader,
  resume: (sessionId) => ["droid", "--resume", sessionId],
};

/** The lines behind the first one look like those of pi. */
function matchOf({ type, id, title, cwd, owner }: Fields): FormatMatch | null {
  const isStart = type === "session_start" && typeof id === "string";
  return isStart && [title, cwd, owner].some((field) => typeof field === "string") ? "certain" : null;
}
