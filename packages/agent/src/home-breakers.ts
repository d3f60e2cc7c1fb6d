import { join } from "node:path";
import type { SessionSettings } from "@throughline/config/internal";
import { causeText } from "@throughline/core/internal";
import { createSummarizerBreakers } from "@throughline/summarizer-providers";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import { type AgentContext, homeOf } from "./agent-context.ts";
import { readHomeFile, writeHomeFile } from "./node/home-file.ts";

/**
 * Keeps breaker state across processes in a file of the home, so that the next process does not wait for a failed
 * summarizer again. The first failure of a summarizer creates the file. If the state cannot be
 * written, `onNote` receives one sentence.
 */
export function homeBreakers(
  context: Pick<AgentContext, "config" | "workingDirectory">,
  { breaker }: Pick<SessionSettings, "breaker">,
  onNote: (message: string) => void,
): SummarizerBreakers {
  const path = join(homeOf(context), "summarizer-breakers.json");
  let hasFailed = false;
  return createSummarizerBreakers({
    ...breaker,
    // Without a readable file every summarizer is asked again.
    snapshot: readHomeFile(path),
    onChange: (snapshot) => {
      try {
        writeHomeFile(path, snapshot);
      } catch (error) {
        if (!hasFailed) onNote(`What is known of the summarizers cannot be kept: ${causeText(error)}`);
        hasFailed = true;
      }
    },
  });
}
