import { detectLineFormat } from "@throughline/openclaw-format/internal";
import type { FileLayout, ForeignFormat, FormatSample } from "./foreign-format.ts";
import { detectForeignFormat } from "./format-table.ts";

/** Formats whose files are lists of messages, or have a message a line. */
const listFormats: ReadonlySet<string> = new Set(["openai", "anthropic", "ai-sdk"]);

/** Whether files of a format may have lines that look like flat lines of claw0: a document, or messages of a provider. */
export function mayLookFlat({ name }: ForeignFormat, { unit }: FileLayout): boolean {
  return unit !== "line" || listFormats.has(name);
}

/** The format of a file of another program; null for a transcript of Throughline, OpenClaw, pi or the tutorials, and for no transcript. */
export function foreignFileFormat(sample: FormatSample): ForeignFormat | null {
  const own = detectLineFormat(new TextDecoder().decode(sample.head).split("\n", 20));
  if (own !== "unknown" && own !== "claw0") return null;
  const format = detectForeignFormat(sample);
  return format === null || own === "unknown" || mayLookFlat(format, format.layout(sample)) ? format : null;
}
