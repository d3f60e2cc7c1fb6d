import { isFields, type Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat, type FormatMatch } from "../foreign-format.ts";
import { matchOfLines } from "../sample-lines.ts";
import { createCopilotCliReader } from "./read-copilot-cli.ts";

/** The format covers GitHub Copilot CLI's sessions: `session-state/<session id>/events.jsonl`. */
export const copilotCliFormat: ForeignFormat = {
  name: "copilot-cli",
  program: "GitHub Copilot CLI",
  layout: () => fileOfLines,
  places: [{ variables: ["COPILOT_HOME"], home: ".copilot", files: [["session-state", /./, "events.jsonl"]] }],
  detect: (sample) => matchOfLines(sample, matchOf),
  createReader: createCopilotCliReader,
  resume: (sessionId) => ["copilot", `--resume=${sessionId}`],
};

function matchOf({ type, data, id, timestamp }: Fields): FormatMatch | null {
  if (typeof type !== "string" || !isFields(data) || typeof id !== "string" || typeof timestamp !== "string")
    return null;
  if (type === "session.start")
    return typeof data["sessionId"] === "string" && "copilotVersion" in data ? "certain" : null;
  return /^(?:user|assistant|system)\.message$/.test(type) ? "likely" : null;
}
