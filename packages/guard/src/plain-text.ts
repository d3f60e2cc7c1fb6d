/** Longer texts are echoes of what was sent; the reason stands at the beginning or at the end. */
const mostCharacters = 8_000;

/**
 * An error text or code in the one spelling that the rules read: lower case, words apart, numbers without separators,
 * the names of the output budget as `outputbudget`, without links and without what it quotes from the prompt.
 */
export function plainText(text: string): string {
  const short = text.length > mostCharacters ? `${text.slice(0, 6000)}\n${text.slice(-2000)}` : text;
  const words = withoutEchoes(
    short
      .normalize("NFKC")
      .replace(/[‘’]/g, "'")
      .replace(/[“”„«»]/g, '"'),
  )
    .replace(/\bhttps?:\/\/\S+|\b\S+@\S+\.\w+/g, " ")
    .replace(/`?\bmax_(?:completion_|new_|output_|gen_)?tokens(?:_to_sample)?\b`?/gi, " outputbudget ")
    .replace(/\bmax(?:Completion|New|Output)?Tokens\b|\bnum_predict\b|\bmax_(?:output|gen)_len\b/g, " outputbudget ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(
      /\bmaximum tokens (?=you requested|requested|value|parameter)|\brequested maximum tokens\b/gi,
      " outputbudget ",
    )
    // A code may be written with hyphens; a sentence keeps its own.
    .replace(/^[\w-]+$/, (code) => code.replaceAll("-", " "))
    .toLowerCase()
    .replace(/n't\b/g, " not")
    .replace(/'s\b/g, "")
    .replace(/["'`*_]/g, " ");
  return joinNumbers(words)
    .replace(/[ \t\r]+/g, " ")
    .trim();
}

/** One number, whoever wrote it: 5,958,968; 128 000 tokens; 256.000; 128k; 1.05M. */
function joinNumbers(text: string): string {
  return text
    .replace(/(?<![\d.])\d{1,3}(?:([,.'\u00a0\u202f])\d{3})(?:\1\d{3})*(?![\d]|[,.]\d)/g, (match) =>
      match.replace(/\D/g, ""),
    )
    .replace(/(?<![\d.])\d{1,3}(?: \d{3})+(?= (?:tok|jeton|bytes|octets|zeichen|tоk|токен))/g, (match) =>
      match.replaceAll(" ", ""),
    )
    .replace(/(?<![\w.])(\d+(?:\.\d+)?) ?([km])(?= |[).,;:]|$|-?tok)/g, (_, amount: string, unit: string) =>
      String(Math.round(Number(amount) * (unit === "k" ? 1000 : 1_000_000))),
    );
}

/** Words before a quotation that say that it is the reason and no part of the prompt. */
const reasonBefore =
  /(?:errors?|exception|failed|failure|reason|details?|says|said|returned|responded|raw|body|upstream|provider|because|(?:error|response) message)\W*$|(?<!user |your )(?:message|msg)\s*[:=]\W*$/i;

/** Words before a quotation that say that it is what was sent. */
const sentBefore = /\b(?:got|received|given|found|instead of)[:\s]*$/i;

/** Takes quotations of several words out: a text that quotes the prompt may say anything there. */
function withoutEchoes(text: string): string {
  const short = text.replace(/'([^'\n]*\s[^'\n]*)'/g, (match, _inner: string, at: number) =>
    sentBefore.test(text.slice(Math.max(0, at - 40), at)) ? " " : match,
  );
  return short.replace(/"([^"\n]*)"/g, (match, inner: string, at: number) => {
    const before = short.slice(Math.max(0, at - 40), at);
    const isWhole = before.trim() === "" && short.slice(at + match.length).trim() === "";
    const isName = !/\s/.test(inner.trim());
    return isWhole || isName || reasonBefore.test(before) ? match : " ";
  });
}
