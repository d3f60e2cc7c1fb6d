import { counted, factLines, type FileFacts, minuteText, scanText } from "./file-facts.ts";
import { branchText, chapterText, leftText, ownChapters } from "./html-printer.ts";
import { escapeText, lineText, printMarkdown } from "./print-markdown.ts";
import type { PrintedAgent, TranscriptPrinter } from "./transcript-printer.ts";
import type { TranscriptRow } from "./transcript-row.ts";
import { visibleText } from "./visible-text.ts";

/** Writes the rows as Markdown, with the prompts as headings. */
export function createMarkdownPrinter(facts: FileFacts): TranscriptPrinter {
  return new MarkdownPrinter(facts);
}

class MarkdownPrinter implements TranscriptPrinter {
  readonly #facts: FileFacts;
  #isOffBranch = false;
  #speaker: string | null = null;

  constructor(facts: FileFacts) {
    this.#facts = facts;
  }

  *head(): Generator<string, void, void> {
    const { name } = this.#facts;
    const chapters = ownChapters(this.#facts);
    yield `# ${shown(name)}\n\n`;
    for (const [term, value] of factLines(this.#facts)) yield `- ${term}: ${shown(value)}\n`;
    yield `\n${shown(scanText(this.#facts))}\n\n`;
    yield* this.#parts();
    if (chapters.length === 0) return;
    yield `## ${counted(chapters.length, "prompt")}\n\n`;
    for (const chapter of chapters) {
      const facts = chapterText(chapter);
      yield `${chapter.number}. ${shown(chapter.title)}${facts === "" ? "" : ` (${facts})`}\n`;
    }
    yield "\n";
  }

  *row(row: TranscriptRow): Generator<string, void, void> {
    const { kind, title, detail, badges, tree, chapter, tsMs, isOffBranch, speaker } = row;
    if (isOffBranch !== this.#isOffBranch) yield `*${branchText(isOffBranch)}*\n\n`;
    this.#isOffBranch = isOffBranch;
    if (speaker !== null && speaker !== this.#speaker)
      yield `**Assistant**${speaker === "" ? "" : ` ${shown(speaker)}`}\n\n`;
    this.#speaker = speaker;
    if (kind === "prompt") {
      const time = minuteText(tsMs);
      // A prompt of a sub-agent starts no chapter.
      yield chapter === null ? "**User**\n\n" : `## ${chapter}. ${shown(title)}\n\n`;
      if (time !== "") yield `*User, ${time} UTC*\n\n`;
    } else if (kind !== "assistant") {
      const facts = [detail, ...badges.map(({ text }) => text)].filter((text) => text !== "").join(" · ");
      yield `**${shown(title)}**${facts === "" ? "" : ` ${shown(facts)}`}\n\n`;
    }
    yield* printMarkdown(tree);
    if (kind === "assistant" && badges.length > 0) yield `*${badges.map(({ text }) => shown(text)).join(" · ")}*\n\n`;
  }

  *startAgent({ name, messages }: PrintedAgent): Generator<string, void, void> {
    this.#speaker = null;
    yield `**Sub-agent** ${shown(name)} · ${counted(messages, "message")}\n\n`;
  }

  *endAgent({ name, key, left }: PrintedAgent): Generator<string, void, void> {
    this.#speaker = null;
    if (left > 0) yield `*… ${shown(leftText(left, key))}*\n\n`;
    yield `**End of sub-agent** ${shown(name)}\n\n`;
  }

  *foot(): Generator<string, void, void> {
    yield `---\n\n`;
    yield* this.#parts();
    yield `Written by Throughline on ${minuteText(this.#facts.exportedAtMs)} UTC.\n`;
  }

  *#parts(): Generator<string, void, void> {
    const { part, fileNames } = this.#facts;
    if (fileNames.length < 2) return;
    const links = fileNames.map((name, index) =>
      index + 1 === part ? `${index + 1}` : `[${index + 1}](<./${encodeURIComponent(name)}>)`,
    );
    yield `File ${part} of ${fileNames.length}: ${links.join(" ")}\n\n`;
  }
}

/** A title is one line. */
function shown(text: string): string {
  return lineText(escapeText(visibleText(text).replaceAll("\n", " ")));
}
