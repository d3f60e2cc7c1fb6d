import { aiSdkFormat } from "./ai-sdk/format.ts";
import { aiderFormat } from "./aider/format.ts";
import { ampFormat } from "./amp/format.ts";
import { anthropicFormat } from "./anthropic/format.ts";
import { claudeCodeFormat } from "./claude-code/format.ts";
import { clineFormat } from "./cline/format.ts";
import { codexFormat } from "./codex/format.ts";
import { copilotCliFormat } from "./copilot-cli/format.ts";
import { cursorFormat } from "./cursor/format.ts";
import { droidFormat } from "./droid/format.ts";
import type { ForeignFormat, FormatSample } from "./foreign-format.ts";
import { geminiFormat } from "./gemini/format.ts";
import { gooseFormat } from "./goose/format.ts";
import { harmonyFormat } from "./harmony/format.ts";
import { kimiCliFormat } from "./kimi-cli/format.ts";
import { langgraphFormat } from "./langgraph/format.ts";
import { openAiFormat } from "./openai/format.ts";
import { openAiAgentsFormat } from "./openai-agents/format.ts";
import { opencodeFormat } from "./opencode/format.ts";
import { qwenCodeFormat } from "./qwen-code/format.ts";
import { shareGptFormat } from "./sharegpt/format.ts";
import type { ForeignFormatName } from "./names.ts";

/** Maps names to formats. The formats that are met most come first. */
export const foreignFormats: ReadonlyMap<ForeignFormatName, ForeignFormat> = new Map(
  [
    claudeCodeFormat,
    codexFormat,
    geminiFormat,
    qwenCodeFormat,
    kimiCliFormat,
    ampFormat,
    droidFormat,
    openAiFormat,
    aiSdkFormat,
    opencodeFormat,
    openAiAgentsFormat,
    langgraphFormat,
    copilotCliFormat,
    clineFormat,
    cursorFormat,
    gooseFormat,
    aiderFormat,
    anthropicFormat,
    shareGptFormat,
    harmonyFormat,
  ].map((format) => [format.name, format]),
);

/**
 * Returns the format of a file by its beginning and its name; null when no format matches. A certain match takes
 * precedence over a likely one.
 */
export function detectForeignFormat(sample: FormatSample): ForeignFormat | null {
  let likely: ForeignFormat | null = null;
  for (const format of foreignFormats.values()) {
    const match = format.detect(sample);
    if (match === "certain") return format;
    if (match === "likely") likely ??= format;
  }
  return likely;
}
