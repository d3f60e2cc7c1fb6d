import type { ForeignFormat, FormatSample } from "../foreign-format.ts";
import { createAiderReader } from "./read-aider.ts";
import { lineKind, turnCutter } from "./aider-lines.ts";

/** The format is the chat history that Aider writes into a project: `.aider.chat.history.md`. */
export const aiderFormat: ForeignFormat = {
  name: "aider",
  program: "Aider",
  layout: () => ({ unit: "text", lists: [], sessions: null, createCutter: turnCutter }),
  // The file lies in each project, and Aider has no folder of its own.
  // The program writes into the folder that it runs in. Only a variable states one place for all sessions.
  places: [{ variables: ["AIDER_CHAT_HISTORY_FILE"], home: null, files: [[]] }],
  detect: (sample) => (beginsChat(sample) ? "certain" : null),
  createReader: createAiderReader,
};

/** The first line that is not blank decides. */
function beginsChat({ head }: FormatSample): boolean {
  const text = new TextDecoder().decode(head.subarray(0, 1024));
  return lineKind(text.replace(/^\uFEFF/, "").trimStart()) === "start";
}
