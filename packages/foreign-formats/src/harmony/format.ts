import type { ForeignFormat, FormatMatch, FormatSample } from "../foreign-format.ts";
import { areTokens, messageCutter, readMarked } from "./harmony-marks.ts";
import { createHarmonyReader } from "./read-harmony.ts";
import { harmonyWriter } from "./write-harmony.ts";

/** Conversations rendered for gpt-oss: what the model was sent, and what it wrote. */
export const harmonyFormat: ForeignFormat = {
  name: "harmony",
  program: "Harmony",
  layout: () => ({ unit: "text", lists: [], sessions: null, createCutter: messageCutter }),
  // Whoever renders a conversation decides where it lies.
  places: [],
  detect: matchOf,
  createReader: createHarmonyReader,
  writer: harmonyWriter,
};

function matchOf({ head }: FormatSample): FormatMatch | null {
  const text = new TextDecoder().decode(head);
  return areTokens(text) || typeof readMarked(text)?.text === "string" ? "certain" : null;
}
