import * as exported from "@throughline/openclaw-format";
import { describeOptions } from "@throughline/test-kit/options";
import { splitterTable } from "../src/line-splitter.ts";
import { indexFileTable } from "../src/sessions-json.ts";
import { pathTable } from "../src/transcript-paths.ts";
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
      call: (options) => exported.resolveStorePath("~/store.json", options),
    },
    { name: "readSessionIndex", table: indexFileTable, call: (options) => exported.readSessionIndex("{}", options) },
    { name: "readSessionsJson", table: indexFileTable, call: (options) => exported.readSessionsJson("{}", options) },
  ],
  [
    "attachEnvelope",
    "classifySessionFile",
    "decodeLine",
    "detachEnvelope",
    "detectDirectoryLayout",
    "detectLineFormat",
    "encodeLine",
    "sessionsJsonPieces",
  ],
);
