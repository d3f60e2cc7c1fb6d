import { ThroughlineError, type Summarizer } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { extractSections } from "./extract-sections.ts";
import { fitSections } from "./fit-sections.ts";
import { parseSummary } from "./parse-summary.ts";
import { emptySections, sectionNames, writeSections, type SummarySections } from "./summary-sections.ts";
import { readTranscript } from "./transcript.ts";

/** Sets the name and the token counter of `createExtractiveSummarizer`. */
export interface ExtractiveSummarizerOptions {
  /** Names the summarizer in records. @default "extractive" */
  readonly name?: string | undefined;
  /** Counts the tokens of a text, so that the summary fits its limit. @default a token for four characters */
  readonly countText?: ((text: string) => number) | undefined;
}

const table: OptionTable<ExtractiveSummarizerOptions> = {
  name: optionKinds.filledText,
  countText: optionKinds.callback,
};

/**
 * Creates a summarizer that needs no model. It extracts the user's requests, decisions, files, commands, failures and
 * open items. It copies text without rewording, is deterministic, and extends the previous summary under the same
 * headings.
 * @throws {ThroughlineError} from `summarize`: ABORTED; SUMMARY_REJECTED when there is nothing to take
 */
export function createExtractiveSummarizer(options: ExtractiveSummarizerOptions = {}): Summarizer {
  assertKnownOptions<ExtractiveSummarizerOptions>("createExtractiveSummarizer", options, table);
  const { name = "extractive", countText = (text): number => Math.ceil(text.length / 4) } = options;
  return {
    async summarize({ text, previousSummary, maxOutputTokens, instruction, signal }) {
      if (signal?.aborted === true) {
        throw new ThroughlineError("ABORTED", "The summary was aborted.", { cause: signal.reason });
      }
      if (instruction !== undefined) {
        throw new ThroughlineError("SUMMARY_REJECTED", `${name} has no model that could follow an instruction.`, {
          details: { source: name },
        });
      }
      const before = previousSummary === null ? emptySections() : parseSummary(previousSummary).sections;
      const merged = mergeSections(before, await extractSections(await readTranscript(text)));
      // The audit treats a text at its limit as cut off, so the summary stays below the limit.
      const summary = writeSections(fitSections(merged, Math.floor(maxOutputTokens * 0.9), countText));
      if (summary !== "") return { summary, source: name, usage: null };
      throw new ThroughlineError("SUMMARY_REJECTED", "There is nothing in the conversation that could be taken.", {
        details: { source: name, problem: "empty", characters: text.length },
      });
    },
  };
}

/** Matches items that are valid only until a newer message: the assistant's last message, and open items. */
const passing = /^(?:The assistant (?:said last|asked): |Not answered yet: )/;

function mergeSections(before: SummarySections, after: SummarySections): SummarySections {
  const hasSpoken = after.state.some((item) => passing.test(item));
  const merged = emptySections();
  for (const name of sectionNames) {
    const isNew = new Set(after[name]);
    // A repeated item counts as new. The counts of omitted items are dropped, because they apply to the earlier text
    // only.
    const kept = before[name].filter(
      (item) => !isNew.has(item) && !(hasSpoken && passing.test(item)) && !/^\(\d+ more, left out\)$/.test(item),
    );
    merged[name].push(...kept, ...isNew);
  }
  const all = new Set(merged.state);
  return { ...merged, state: merged.state.filter((item) => !isOutdated(item, all)) };
}

/** A file that was changed later is not listed as read too. */
function isOutdated(item: string, state: ReadonlySet<string>): boolean {
  return item.startsWith("Read: ") && state.has(item.replace("Read: ", "Changed: "));
}
