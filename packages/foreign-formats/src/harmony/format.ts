import type { ForeignFormat, FormatMatch, FormatSample } from "../foreign-format.ts";
import { areTokens, messageCutter, readMarked } from "./harmony-marks.ts";
import { createHarmonyReader } from "./read-harmony.ts";
import { harmonyWriter } from "./write-harmony.ts";

/** The format covers conversations rendered for gpt-oss: the model's input and its output. */
export const harmonyFormat: ForeignFormat = {
  name: "harmony",
  program: "Harmony",
  layout: () => ({ unit: "text", lists: [], sessions: null, createCutter: messageCutter }),
  // The program that renders a conversation chooses the file's location, so none is known.
  places: [],
  detect: matchOf,
  createReader: createHarmonyReader,
  writer: harmonyWriter,
};

function matchOf({ head }: FormatSample): FormatMatch | null {
  const text = new TextDecoder().decode(head);
  return areTokens(text) || typeof readMarked(text)?.text === "string" ? "certain" : null;
}
