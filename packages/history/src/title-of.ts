import { isRecordOfType, type Message, type SessionRecord } from "@throughline/core";
import { promptText } from "./prompt-text.ts";
import { shortenWord } from "./shorten-word.ts";

const mostMessages = 5;
/** Limits the width of a title, in terminal cells. */
const mostCells = 60;
/** A shorter first sentence is not a useful title, so the next sentence stays with it. */
const shortestSentence = 12;

/**
 * Derives the title of a conversation by rules, without a model. It uses the first of the first five user messages that
 * yields a title. The title has at most 60 cells, and no tag, key, control character or path of three parts. Returns
 * null when no message yields a title.
 *
 * @param texts the user's messages, oldest first
 */
export function titleOf(texts: readonly string[]): string | null {
  for (const text of texts.slice(0, mostMessages)) {
    const title = titleOfText(text);
    if (title !== null) return title;
  }
  return null;
}

/**
 * Derives the same title from records that arrive one by one, oldest first. It ignores messages that a program wrote,
 * such as those of a memory flush.
 */
export class TitleFinder {
  readonly #texts: string[] = [];
  #read = 0;
  #title: string | null = null;

  take(record: SessionRecord): void {
    if (this.#title !== null || this.#texts.length >= mostMessages) return;
    if (!isRecordOfType(record, "message")) return;
    // A record of another program may have the type but no message.
    const message = record.message as Partial<Message> | null | undefined;
    if (message?.role !== "user") return;
    const { source, content } = message;
    if (source === "flush" || source === "continue" || source === "correction") return;
    const text = textOf(content);
    if (text !== "") this.#texts.push(text);
  }

  /** Stays null until a record yields a title. Each text is read once, when the title is asked for. */
  get title(): string | null {
    while (this.#title === null && this.#read < this.#texts.length) {
      this.#title = titleOfText(this.#texts[this.#read] ?? "");
      this.#read += 1;
    }
    return this.#title;
  }

  /** Holds the text that the title was derived from; null without a title. */
  get text(): string | null {
    return this.title === null ? null : (this.#texts[this.#read - 1] ?? null);
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block: unknown) => {
      const { type, text } = (block ?? {}) as { readonly type?: unknown; readonly text?: unknown };
      return type === "text" && typeof text === "string" ? [text] : [];
    })
    .join("\n");
}

function titleOfText(text: string): string | null {
  const lines = promptText(text)
    .split("\n")
    .map(plainLine)
    .filter((line) => line !== "" && !isTrivial(line) && !/^\/[\w:-]+$/.test(line));
  const told = lines.filter((line) => /\p{L}{2}/u.test(line) && !isListing(line));
  const behind = told.map(behindReaction);
  const line = told.length === 0 ? lines.find(hasLetterOrDigit) : behind.find((each) => each !== "");
  if (line === undefined) return null;
  const { rest, isRequest } = withoutOpening(line.split(" ").map(shortenWord).join(" "));
  const sentence = withoutEnd(firstSentence(rest));
  const whole = isRequest && sentence.endsWith("?") ? withoutEnd(sentence.slice(0, -1)) : sentence;
  // A single quotation mark is the rest of a quotation that was cut, so it is removed.
  const title = whole.split('"').length % 2 === 0 ? whole.replaceAll('"', "") : whole;
  return hasLetterOrDigit(title) ? cutToCells(withCapital(title), mostCells) : null;
}

const reactions: ReadonlySet<string> = new Set(
  "no|nope|nah|yes|yeah|yep|wait|oh|ah|ugh|argh|damn|omg|omfg|wtf|lol|wow|jesus|fuck|fucking|shit|hell|hmm|hm|sorry|oops".split(
    "|",
  ),
);
/** A longer sentence contains more than a reaction to an answer, so it stays. */
const longestReaction = 9;

/**
 * Removes first sentences that only react to an answer, such as "no, that's not it.". Returns an empty text if the line
 * holds nothing else.
 */
function behindReaction(line: string): string {
  let rest = line;
  for (;;) {
    const sentence = firstSentence(rest, 1);
    const words = sentence.split(" ");
    const first = (words[0] ?? "").toLowerCase().replace(/[^\p{L}]/gu, "");
    if (!reactions.has(first) || words.length > longestReaction) return rest;
    rest = rest.slice(sentence.length).trim();
  }
}

function hasLetterOrDigit(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

function plainLine(line: string): string {
  const text = line.trim().replace(/^(#{1,6}|[-*+>]|\d{1,3}[.)])\s/, "");
  return text
    .replaceAll("**", "")
    .replaceAll("`", "")
    .replaceAll("*", "")
    .split(/\s/)
    .filter((word) => word !== "")
    .join(" ");
}

const trivialWords: ReadonlySet<string> = new Set(
  (
    "continue|go on|go ahead|carry on|keep going|yes|no|y|n|ok|okay|sure|yep|nope|test|testing|test test|hi|hello|hey|hallo|" +
    "hi there|hello there|hey there|hello world|good morning|good evening|thanks|thank you|thx|do it|proceed|next|again|" +
    "retry|try again|stop|help|next one|ping|pong|done|hm|hmm|great|nice|cool|perfect|right|please|please continue|" +
    "what|why|how|who are you|are you there|exit|quit|clear|resume|start|begin|/clear|/help|/new|/exit"
  ).split("|"),
);

function isTrivial(line: string): boolean {
  const words = line.toLowerCase().split(/[^\p{L}\p{N}/]/u);
  return trivialWords.has(words.filter((word) => word !== "").join(" "));
}

/** Detects stack traces, data lists, changed lines, addresses and paths, because none of them makes a useful title. */
function isListing(line: string): boolean {
  return (
    /^(at |File "|Traceback|[{[<|]|[+-]\d{1,6} |@@ |diff --git )/.test(line) ||
    /^https?:\/\/\S{1,2000}$/.test(line) ||
    /^['"]?([~.]?\/|[A-Za-z]:\\)[^'"]{1,500}['"]?$/.test(line) ||
    /^(System|Error|Warning|\w{1,40}(Error|Exception)):/.test(line)
  );
}

const greeting =
  /^(hi|hello|hey|hallo|good (morning|evening|afternoon)|ok|okay|thanks?|thank you|please|pls|so|now|also|hm{1,5}|yo)(?![\p{L}\p{N}'’_./-])(?! world\b)( (there|claude|codex|gemini|again|everyone|all|team))?[ ,.!:;–—-]{0,5}/iu;
/** These words are a greeting only before punctuation: "right align" is not. */
const remark = /^(alright|right|great|perfect|cool|nice|well)[,.!:;–—-][ ,.!:;–—-]{0,5}/i;
const request =
  /^((can|could|would|will) (you|u|we) (please |pls |kindly |maybe |just |also )?|how (can|do|could|would|should) (i|we|you) )/i;
const opener =
  /^((please|pls|kindly) |(i want|i'd like|i would like|i need) (you )?to (know (more )?(about )?)?|i need (some |your )?help (with|to|in) |(i think|i feel like|i believe|i guess)( that)? (there(?:'s| is| are) )?|what(?:'s| is| are) the |let'?s |let us |we (need|have|want) to |(we|you) should |how about (you|we) |help me (to )?|you(?:'re| are) (?:going to|about to|given a task to|asked to) |your (?:task|job|goal) is to |go ahead and |i(?:'m| am) (?:trying|going|looking) to |are you able to |do you mind |is it possible to )/i;
const role = /^(as|imagine you(?:'re| are)|you(?:'re| are)|act as) an? [^,.]{1,60}[,.] /i;

/** Removes up to three greetings and openers. `isRequest` is true for a question such as "can you". */
function withoutOpening(line: string): { readonly rest: string; readonly isRequest: boolean } {
  let rest = line;
  let isRequest = false;
  for (let count = 0; count < 3; count++) {
    isRequest ||= request.test(rest);
    const cut = [remark, greeting, role, request, opener].reduce((text, each) => text.replace(each, ""), rest);
    if (cut === rest || !hasLetterOrDigit(cut)) break;
    rest = cut;
  }
  return { rest, isRequest };
}

const sentenceEnds = ".!?。！？";
const abbreviations: ReadonlySet<string> = new Set([
  "e.g.",
  "i.e.",
  "etc.",
  "vs.",
  "mr.",
  "dr.",
  "ms.",
  "no.",
  "approx.",
]);

/**
 * Returns the text up to the first sentence end after `least` characters. A space or the end of the text must follow
 * the sentence end.
 */
function firstSentence(text: string, least: number = shortestSentence): string {
  for (let at = least - 1; at < text.length; at++) {
    const end = text.charAt(at);
    if (!sentenceEnds.includes(end)) continue;
    const next = text.charAt(at + 1);
    const word = text.slice(text.lastIndexOf(" ", at) + 1, at + 1).toLowerCase();
    if ((next === "" || next === " ") && !abbreviations.has(word)) return text.slice(0, at + 1);
  }
  return text;
}

function withoutEnd(text: string): string {
  let end = text.length;
  while (end > 0 && " .,:;!…-–—'\"(。！".includes(text.charAt(end - 1))) end--;
  return text
    .slice(0, end)
    .replace(/^["'(–—-]{1,3}/, "")
    .trim();
}

function withCapital(text: string): string {
  const [first = ""] = text.split(" ", 1);
  return /[./_\\:0-9]/.test(first) || /\p{Lu}/u.test(first)
    ? text
    : text.replace(/^./u, (letter) => letter.toUpperCase());
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}|\p{Regional_Indicator}|[\u{20000}-\u{3fffd}]/u;

/** Returns the text if it fits. Otherwise it cuts at a word if that keeps most of the text, and appends `…`. */
function cutToCells(text: string, most: number): string {
  // A visible grapheme takes at least one cell and has only a few characters, so this slice is long enough.
  const pieces = [...graphemes.segment(text.slice(0, most * 20))].map(({ segment }) => segment);
  let cells = 0;
  let kept = "";
  let fitting = "";
  for (const piece of pieces) {
    cells += wide.test(piece) ? 2 : 1;
    if (cells > most) break;
    kept += piece;
    if (cells <= most - 1) fitting = kept;
  }
  if (kept.length === text.length) return text;
  const space = fitting.lastIndexOf(" ");
  return `${withoutEnd(space > fitting.length * 0.6 ? fitting.slice(0, space) : fitting)}…`;
}
