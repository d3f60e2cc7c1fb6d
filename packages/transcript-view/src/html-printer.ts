import { sha256Hex } from "@throughline/core/internal";
import { counted, factLines, type FileFacts, type ListedChapter, minuteText, scanText } from "./file-facts.ts";
import { htmlStyle } from "./html-style.ts";
import { escapeAttribute, escapeHtml, printHtml } from "./print-html.ts";
import type { PrintedAgent, TranscriptPrinter } from "./transcript-printer.ts";
import type { RowBadge, TranscriptRow } from "./transcript-row.ts";
import { visibleText } from "./visible-text.ts";

/** Writes a page that runs no script and sends no request, with the style inside. */
export function createHtmlPrinter(facts: FileFacts): TranscriptPrinter {
  return new HtmlPrinter(facts);
}

class HtmlPrinter implements TranscriptPrinter {
  readonly #facts: FileFacts;
  #isInSection = false;
  #isInAgent = false;
  #isOffBranch = false;
  #lastSeq = 0;
  /** Names the model whose reply the last rows belong to; null behind a row of anybody else. */
  #speaker: string | null = null;

  constructor(facts: FileFacts) {
    this.#facts = facts;
  }

  *head(): Generator<string, void, void> {
    const { name, replaced } = this.#facts;
    yield `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n`;
    yield `<meta http-equiv="content-security-policy" content="${policy()}">\n`;
    yield `<meta name="viewport" content="width=device-width,initial-scale=1">\n<meta name="referrer" content="no-referrer">\n`;
    yield `<title>${shown(name)}</title>\n<style>${htmlStyle}</style>\n</head>\n<body>\n<div class="page">\n`;
    yield `<header class="top">\n<h1>${shown(name)}</h1>\n<dl class="facts">\n`;
    for (const [term, value] of factLines(this.#facts)) yield `<dt>${term}</dt><dd>${shown(value)}</dd>\n`;
    yield `</dl>\n<p class="scan${replaced === null ? " warn" : ""}">${shown(scanText(this.#facts))}</p>\n`;
    yield* this.#parts();
    yield `</header>\n`;
    yield* this.#contents();
    yield `<main>\n`;
  }

  *row(row: TranscriptRow): Generator<string, void, void> {
    const { kind, chapter, isOffBranch, tsMs, speaker } = row;
    if (this.#isInAgent) return yield* this.#agentRow(row);
    if (chapter !== null) yield* this.#section(chapter);
    else if (!this.#isInSection) yield* this.#section(null);
    if (isOffBranch !== this.#isOffBranch) yield `<div class="marker"><b>${branchText(isOffBranch)}</b></div>\n`;
    this.#isOffBranch = isOffBranch;
    if (speaker !== null && speaker !== this.#speaker) yield speakerLine(speaker, tsMs);
    this.#speaker = speaker;
    const id = row.seq === this.#lastSeq ? "" : ` id="r${row.seq}"`;
    this.#lastSeq = row.seq;
    yield* rowParts(row, `class="${kind}${isOffBranch ? " off" : ""}"${id}`);
  }

  *startAgent({ name, messages }: PrintedAgent): Generator<string, void, void> {
    this.#isInAgent = true;
    this.#speaker = null;
    yield `<details class="agent"><summary><b>Sub-agent</b> <span class="d">${shown(name)}</span>`;
    yield `<span class="b">${counted(messages, "message")}</span></summary><div>\n`;
  }

  *endAgent({ key, left }: PrintedAgent): Generator<string, void, void> {
    this.#isInAgent = false;
    this.#speaker = null;
    if (left > 0) yield `<div class="more">… ${shown(leftText(left, key))}</div>`;
    yield `</div></details>\n`;
  }

  /** The rows of a sub-agent are no chapters, and their numbers belong to another session. */
  *#agentRow(row: TranscriptRow): Generator<string, void, void> {
    const { kind, tsMs, speaker } = row;
    if (speaker !== null && speaker !== this.#speaker) yield speakerLine(speaker, tsMs);
    this.#speaker = speaker;
    yield* rowParts(row, `class="${kind}"`);
  }

  *foot(): Generator<string, void, void> {
    if (this.#isInSection) yield `</section>\n`;
    yield `</main>\n<footer class="foot">`;
    yield* this.#parts();
    yield `<p>Written by Throughline on ${minuteText(this.#facts.exportedAtMs)} UTC. Control characters are shown as signs.</p></footer>\n`;
    yield `</div>\n</body>\n</html>\n`;
  }

  *#section(chapter: number | null): Generator<string, void, void> {
    if (this.#isInSection) yield `</section>\n`;
    yield chapter === null ? `<section>\n` : `<section id="c${chapter}">\n`;
    this.#isInSection = true;
    this.#speaker = null;
  }

  *#parts(): Generator<string, void, void> {
    const { part, fileNames } = this.#facts;
    if (fileNames.length < 2) return;
    const links = fileNames.map((name, index) =>
      index + 1 === part
        ? `<b>${index + 1}</b>`
        : `<a href="./${escapeAttribute(encodeURIComponent(name))}">${index + 1}</a>`,
    );
    yield `<p class="parts">File ${part} of ${fileNames.length}: ${links.join(" ")}</p>\n`;
  }

  *#contents(): Generator<string, void, void> {
    const chapters = ownChapters(this.#facts);
    if (chapters.length === 0) return;
    yield `<nav class="toc" aria-label="Prompts">\n<h2>${counted(chapters.length, "prompt")}</h2>\n<ol>\n`;
    for (const chapter of chapters) yield entryText(chapter);
    yield `</ol>\n</nav>\n`;
  }
}

/** Lists the chapters of one file. With those of all files, the size of all would grow with the square of their number. */
export function ownChapters({ chapters, part }: FileFacts): readonly ListedChapter[] {
  return chapters.filter((chapter) => chapter.part === part);
}

function entryText(chapter: ListedChapter): string {
  const facts = chapterText(chapter);
  const small = facts === "" ? "" : `<small>${facts}</small>`;
  return `<li><a href="#c${chapter.number}"><span class="n">${chapter.number}</span><span class="t">${shown(chapter.title)}</span>${small}</a></li>\n`;
}

/** The style is the only thing that the page may use beside images in the file itself. */
function policy(): string {
  const hash = Buffer.from(sha256Hex(htmlStyle), "hex").toString("base64");
  return `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`;
}

function shown(text: string): string {
  return escapeHtml(visibleText(text));
}

export function branchText(isOffBranch: boolean): string {
  return isOffBranch ? "Another branch: the conversation left these messages" : "Back on the current branch";
}

export function chapterText({ tools, errors, files }: ListedChapter): string {
  return [
    ...(tools > 0 ? [counted(tools, "call")] : []),
    ...(errors > 0 ? [`${errors.toLocaleString("en-US")} failed`] : []),
    ...(files > 0 ? [counted(files, "file")] : []),
  ].join(" · ");
}

export function leftText(left: number, key: string): string {
  return `${counted(left, "record")} more in the session ${key}, not in this file`;
}

function timeText(tsMs: number | null): string {
  const text = minuteText(tsMs);
  return text === "" ? "" : `<time>${text}</time>`;
}

function speakerLine(model: string, tsMs: number | null): string {
  const name = model === "" ? "" : `<span class="m">${shown(model)}</span>`;
  return `<div class="h by"><b>Assistant</b>${name}${timeText(tsMs)}</div>\n`;
}

function* rowParts(row: TranscriptRow, attributes: string): Generator<string, void, void> {
  const { kind, title, badges, fold, tree, chapter } = row;
  if (kind === "prompt") {
    const place = chapter === null ? "" : `<a href="#c${chapter}">${chapter}</a>`;
    const heading = chapter === null ? "h3" : "h2";
    yield `<div ${attributes}><${heading} class="h">${place}<b>User</b>${timeText(row.tsMs)}</${heading}>`;
    yield* printHtml(tree);
    yield `</div>\n`;
  } else if (kind === "assistant") {
    yield `<div ${attributes}>`;
    yield* printHtml(tree);
    yield badges.length === 0 ? `</div>\n` : `<div class="ends">${badges.map(badgeText).join(" ")}</div></div>\n`;
  } else {
    const line = `<b>${escapeHtml(title)}</b>${detailText(row)}${badges.map(badgeText).join("")}`;
    if (fold === "none" || tree.length === 0) {
      const isBox = kind === "tool" || kind === "command" || kind === "thinking";
      yield isBox
        ? `<details ${attributes}><summary>${line}</summary></details>\n`
        : `<div ${attributes}>${line}</div>\n`;
      return;
    }
    yield `<details ${attributes}${fold === "open" ? " open" : ""}><summary>${line}</summary><div>`;
    yield* printHtml(tree);
    yield `</div></details>\n`;
  }
}

function detailText({ detail, badges }: TranscriptRow): string {
  if (detail !== "") return ` <span class="d">${escapeHtml(detail)}</span>`;
  return badges.length > 0 ? ` <span class="d"></span>` : "";
}

function badgeText({ text, tone }: RowBadge): string {
  return `<span class="b${tone === "plain" ? "" : ` ${tone}`}">${shown(text)}</span>`;
}
