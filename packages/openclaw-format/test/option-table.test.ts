import { readSessionIndex } from "../src/session-index.ts";
import * as exported from "@throughline/openclaw-format";
import { describeOptions } from "@throughline/test-kit/options";
import { splitterTable } from "../src/line-splitter.ts";
import { indexFileTable, readSessionsJson } from "../src/sessions-json.ts";
import { pathTable, resolveStorePath } from "../src/transcript-paths.ts";
import { readerTable } from "../src/transcript-reader.ts";

describeOptions(
  exported,
  [
    {
      name: "createLineSplitter",
      table: splitterTable,
      call: (options) => exported.createLineSplitter(options),
    },
    {
      name: "createTranscriptReader",
      table: readerTable,
      call: (options) => exported.createTranscriptReader(options),
    },
    {
      name: "resolveStorePath",
      table: pathTable,
      valid: { stateDir: "/state", homeDir: "/home" },
      call: (options) => resolveStorePath("~/store.json", options),
    },
    { name: "readSessionIndex", table: indexFileTable, call: (options) => readSessionIndex("{}", options) },
    { name: "readSessionsJson", table: indexFileTable, call: (options) => readSessionsJson("{}", options) },
  ],
  ["decodeLine"],
);
