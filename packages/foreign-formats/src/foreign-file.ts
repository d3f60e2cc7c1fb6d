import { detectLineFormat } from "@throughline/openclaw-format/internal";
import type { FileLayout, ForeignFormat, FormatSample } from "./foreign-format.ts";
import { detectForeignFormat } from "./format-table.ts";

/** Files of these formats are lists of messages or hold one message on each line. */
const listFormats: ReadonlySet<string> = new Set(["openai", "anthropic", "ai-sdk"]);

/**
 * Returns whether files of a format may contain lines that look like flat lines of claw0. That holds for documents and
 * for messages of a provider.
 */
export function mayLookFlat({ name }: ForeignFormat, { unit }: FileLayout): boolean {
  return unit !== "line" || listFormats.has(name);
}

/**
 * Returns the format of another program's file. Returns null for a transcript of Throughline, OpenClaw, pi or the
 * tutorials, and for a file that is no transcript.
 */
export function foreignFileFormat(sample: FormatSample): ForeignFormat | null {
  const own = detectLineFormat(new TextDecoder().decode(sample.head).split("\n", 20));
  if (own !== "unknown" && own !== "claw0") return null;
  const format = detectForeignFormat(sample);
  return format === null || own === "unknown" || mayLookFlat(format, format.layout(sample)) ? format : null;
}
