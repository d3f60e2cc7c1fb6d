import type { ForeignFormat, FormatSample } from "../foreign-format.ts";
import { createAiderReader } from "./read-aider.ts";
import { lineKind, turnCutter } from "./aider-lines.ts";

/** The chat history that Aider writes into a project: `.aider.chat.history.md`. */
export const aiderFormat: ForeignFormat = {
  name: "aider",
  program: "Aider",
  layout: () => ({ unit: "text", lists: [], sessions: null, createCutter: turnCutter }),
  // A file of each project, and no folder of the program's own.
  places: [],
  detect: (sample) => (beginsChat(sample) ? "certain" : null),
  createReader: createAiderReader,
};

/** Whether the first line that is not blank begins a chat. */
function beginsChat({ head }: FormatSample): boolean {
  const text = new TextDecoder().decode(head.subarray(0, 1024));
  return lineKind(text.replace(/^\uFEFF/, "").trimStart()) === "start";
}
