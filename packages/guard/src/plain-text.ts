import { linearExpression } from "@throughline/core/internal";

/** A longer text echoes the request. The reason is at the beginning or at the end. */
const mostCharacters = 8_000;

/**
 * Normalizes an error text or code for the rules: lower case, separate words, numbers without separators, and
 * `outputbudget` for every name of the output budget. Links and quotations of the prompt are removed.
 */
export function plainText(text: string): string {
  const short = text.length > mostCharacters ? `${text.slice(0, 6000)}\n${text.slice(-2000)}` : text;
  const words = withoutEchoes(
    short
      .normalize("NFKC")
      .replace(/[‘’]/g, "'")
      .replace(/[“”„«»]/g, '"'),
  )
    .replace(/\S+/g, withoutLink)
    .replace(/`?\bmax_(?:completion_|new_|output_|gen_)?tokens(?:_to_sample)?\b`?/gi, " outputbudget ")
    .replace(/\bmax(?:Completion|New|Output)?Tokens\b|\bnum_predict\b|\bmax_(?:output|gen)_len\b/g, " outputbudget ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(
      /\bmaximum tokens (?=you requested|requested|value|parameter)|\brequested maximum tokens\b/gi,
      " outputbudget ",
    )
    // A text of a single word is a code, and its hyphens separate words. The hyphens of a sentence stay.
    .replace(/^[\w-]+$/, (code) => code.replaceAll("-", " "))
    .toLowerCase()
    .replace(/n't\b/g, " not")
    .replace(/'s\b/g, "")
    .replace(/["'`*_]/g, " ");
  return joinNumbers(words)
    .replace(/[ \t\r]+/g, " ")
    .trim();
}

/** Removes a link or a mail address from a word, because its parts could match a rule. */
function withoutLink(word: string): string {
  const at = word.indexOf("@");
  const link = word.search(/\bhttps?:\/\//);
  if (link !== -1) return `${word.slice(0, link)} `;
  const start = word.search(/\w/);
  if (at <= start || start === -1) return word;
  const dot = word.lastIndexOf(".");
  return dot > at + 1 && /^\.\w/.test(word.slice(dot, dot + 2)) ? `${word.slice(0, start)} ` : word;
}

/** Unifies the spellings of a number: 5,958,968; 128 000 tokens; 256.000; 128k; 1.05M. */
function joinNumbers(text: string): string {
  const joined = text.replace(/[\d.][\d,.'\u00a0\u202f]*/g, joinSeparated);
  return joined
    .replace(/[\d ]+/g, (match, at: number) =>
      match.endsWith(" ") && isUnit(joined.slice(at + match.length, at + match.length + 10))
        ? joinSpaced(match)
        : match,
    )
    .replace(/(?<![\w.])(\d{1,9}(?:\.\d{1,9})?) ?([km])(?= |[).,;:]|$|-?tok)/g, (_, amount: string, unit: string) =>
      String(Math.round(Number(amount) * (unit === "k" ? 1000 : 1_000_000))),
    );
}

/** Removes the separators of `5,958,968`. All separators must be the same character, each before three digits. */
function joinSeparated(match: string): string {
  const end = match.search(/\D{0,3}$/);
  return /^\d{1,3}([,.'\u00a0\u202f])\d{3}(?:\1\d{3}){0,4}$/.test(match.slice(0, end))
    ? match.slice(0, end).replace(/\D/g, "") + match.slice(end)
    : match;
}

function isUnit(text: string): boolean {
  return /^(?:tok|jeton|bytes|octets|zeichen|tоk|токен)/.test(text);
}

/** Joins the groups of `128 000 `. Groups of three digits join a first group of at most three. */
function joinSpaced(match: string): string {
  const groups = match.trimEnd().split(" ");
  let first = groups.length - 1;
  while (first > 0 && groups[first]?.length === 3 && /^\d{1,3}$/.test(groups[first - 1] ?? "")) first -= 1;
  return `${[...groups.slice(0, first), groups.slice(first).join("")].join(" ")} `;
}

/** These words before a quotation show that it is the reason of the error, not a part of the prompt. */
const reasonBefore = linearExpression(
  String.raw`(?:errors?|exception|failed|failure|reason|details?|says|said|returned|responded|raw|body|upstream|provider|because|(?:error|response) message)\W*$|(?<!user |your )(?:message|msg)\s*[:=]\W*$`,
  "i",
);

/** These words before a quotation show that the quotation repeats the request. */
const sentBefore = linearExpression(String.raw`\b(?:got|received|given|found|instead of)[:\s]*$`, "i");

/** Removes quotations of several words, because a quoted prompt may contain any text, including the words of a rule. */
function withoutEchoes(text: string): string {
  const short = text.replace(/'[^'\n]*'/g, (match, at: number) =>
    /\s/.test(match) && sentBefore.test(text.slice(Math.max(0, at - 40), at)) ? " " : match,
  );
  const start = short.length - short.trimStart().length;
  const end = short.trimEnd().length;
  return short.replace(/"([^"\n]*)"/g, (match, inner: string, at: number) => {
    const before = short.slice(Math.max(0, at - 40), at);
    const isWhole = at <= start && at + match.length >= end;
    const isName = !/\s/.test(inner.trim());
    return isWhole || isName || reasonBefore.test(before) ? match : " ";
  });
}
