import type { Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat, type FormatMatch } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { matchOfLines } from "../sample-lines.ts";
import { gooseDatabase } from "./goose-database.ts";
import { GooseMessages } from "./goose-messages.ts";

/** The format covers Goose's sessions: its database, and the files of lines of earlier versions. */
export const gooseFormat: ForeignFormat = {
  name: "goose",
  program: "Goose",
  layout: () => fileOfLines,
  places: [
    {
      variables: ["XDG_DATA_HOME"],
      home: ".local/share",
      files: [
        ["goose", "sessions", "sessions.db"],
        ["goose", "sessions", /\.jsonl$/],
      ],
    },
    { variables: [], home: "AppData/Roaming/Block", files: [["goose", "data", "sessions", "sessions.db"]] },
    {
      variables: ["GOOSE_PATH_ROOT"],
      home: null,
      files: [
        ["data", "sessions", "sessions.db"],
        ["data", "sessions", /\.jsonl$/],
      ],
    },
  ],
  database: gooseDatabase,
  detect: (sample) => matchOfLines(sample, matchOf),
  createReader: (options) => createListReader(new GooseMessages(), options),
  resume: (sessionId) => ["goose", "session", "--resume", "--session-id", sessionId],
};

/** Only the first line of a file states the folder that the program ran in. */
function matchOf({ working_dir: folder, message_count: count, description, role }: Fields): FormatMatch | null {
  if (role !== undefined || typeof folder !== "string") return null;
  return typeof count === "number" && typeof description === "string" ? "certain" : null;
}
