import { asText } from "../as-text.ts";
import { isJsonFields } from "@throughline/openclaw-format/internal";
import type { ForeignFormat } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { documentIn } from "../sample-units.ts";
import { opencodeDatabase } from "./opencode-database.ts";
import { OpencodeMessages } from "./opencode-messages.ts";
import { opencodeWriter } from "./write-opencode.ts";

const lists = [["messages"]];

/** opencode's sessions: its database, and what `opencode export` writes. */
export const opencodeFormat: ForeignFormat = {
  name: "opencode",
  program: "opencode",
  layout: () => ({ unit: "document", lists, sessions: null }),
  places: [{ variables: ["XDG_DATA_HOME"], home: ".local/share", files: [["opencode", "opencode.db"]] }],
  database: opencodeDatabase,
  detect: (sample) => {
    const document = documentIn(sample, lists);
    const [first] = document?.elements ?? [];
    if (first !== undefined) return isJsonFields(first["info"]) && Array.isArray(first["parts"]) ? "certain" : null;
    const info = document?.head["info"];
    return isJsonFields(info) && asText(info["id"]).startsWith("ses_") ? "certain" : null;
  },
  createReader: (options) => createListReader(new OpencodeMessages(), options),
  writer: opencodeWriter,
};
