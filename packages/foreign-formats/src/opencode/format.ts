import { isFields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { ForeignFormat, FormatSample } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { documentIn, headFields } from "../sample-units.ts";
import { opencodeDatabase } from "./opencode-database.ts";
import { OpencodeMessages } from "./opencode-messages.ts";
import { opencodeTree } from "./opencode-tree.ts";
import { opencodeWriter } from "./write-opencode.ts";

const lists = [["messages"]];

/**
 * The format covers opencode's sessions: its database, the files of older versions, and the output of `opencode
 * export`.
 */
export const opencodeFormat: ForeignFormat = {
  name: "opencode",
  program: "opencode",
  layout: () => ({ unit: "document", lists, sessions: null }),
  places: [
    {
      variables: ["XDG_DATA_HOME"],
      home: ".local/share",
      files: [
        // A preview version keeps a database of its own, such as `opencode-dev.db`.
        ["opencode", /^opencode(?:-[\w.-]{1,60})?\.db$/],
        ["opencode", "storage", "session", /./, /^ses_\w{1,100}\.json$/],
      ],
    },
    { variables: ["OPENCODE_DB"], home: null, files: [[]] },
  ],
  database: opencodeDatabase,
  tree: opencodeTree,
  detect: (sample) => {
    if (opencodeTree.placeOf(sample.path) !== null) return isSessionFile(sample) ? "certain" : null;
    const document = documentIn(sample, lists);
    const [first] = document?.elements ?? [];
    if (first !== undefined) return isFields(first["info"]) && Array.isArray(first["parts"]) ? "certain" : null;
    const info = document?.head["info"];
    return isFields(info) && asText(info["id"]).startsWith("ses_") ? "certain" : null;
  },
  createReader: (options) => createListReader(new OpencodeMessages(), options),
  writer: opencodeWriter,
  resume: (sessionId) => ["opencode", "--session", sessionId],
};

/** A session's file begins with its id. A broken file of that name does not, and is not detected. */
function isSessionFile({ head }: FormatSample): boolean {
  const text = new TextDecoder().decode(head);
  return asText(headFields(text)["id"]).startsWith("ses_") || text.trimStart().startsWith('{"id":"ses_');
}
