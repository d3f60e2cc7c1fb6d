import { linearExpression, type LinearExpression } from "@throughline/core/internal";

export interface TokenSizes {
  readonly inputTokens: number | null;
  readonly limitTokens: number | null;
  readonly maxOutputTokens: number | null;
}

type Role = "input" | "limit" | "output" | "unknown" | "none";

interface Figure {
  readonly value: number;
  readonly role: Role;
  /** A figure whose adjacent words name its role has priority over a figure that only follows such words. */
  readonly isNamed: boolean;
}

const outputWords = "outputbudget|output|completions?|generation|generated|response|new tokens";
const inputWords = "prompt|input|inputs|messages|text input|conversation|history";

/** Matches the words directly after a figure. */
const namedAfter: readonly (readonly [LinearExpression, Role])[] = [
  [linearExpression(String.raw`^\)? ?(?:draft|cached|reserved tokens for tools)`), "none"],
  [
    linearExpression(
      `^\\)? ?(?:tokens? )?(?:(?:in|for|of) (?:the |your )?|reserved for (?:the )?)?(?:${outputWords})\\b`,
    ),
    "output",
  ],
  [linearExpression(`^\\)? ?(?:tokens? )?(?:(?:in|for|of|from) (?:the |your )?)?(?:${inputWords})\\b`), "input"],
  [
    linearExpression(String.raw`^\)?(?: ?-? ?tokens?)? ?(?:token )?(?:max(?:imum)?|context|limit|window|allowed)\b`),
    "limit",
  ],
];

/** Matches the words before a figure. The first pattern that matches decides. */
const before: readonly (readonly [LinearExpression, Role])[] = [
  [
    linearExpression(
      String.raw`\b(?:requires?|needs?|would (?:need|require|take|be))(?: (?!max|at most|no more|up to|under|below|less)[\w.-]+){0,5}[ :=(]*$`,
    ),
    "input",
  ],
  [linearExpression(String.raw`\b(?:by|over by|off by|error|code|status|index|page|tier|version|port)[ :(]*$`), "none"],
  [
    linearExpression(
      String.raw`\b(?:max(?:imum)?|limit|limited to|cap|capacity|allow(?:s|ed)|supports?|accepts?|up to|at most|no more than|available|configured|budget)(?:(?: |-)(?!requested|but|however|got|while)[\w.-]+){0,6}[ :=([]*(?:\S+ )?$`,
    ),
    "limit",
  ],
  [
    linearExpression(
      String.raw`\b(?:[nm](?:um)?[ -]ctx|context|window|model|sequence|seq)[ -]?(?:length|len|size|window|limit)?(?: \w+){0,3}[ :=(]*$`,
    ),
    "limit",
  ],
  [linearExpression(String.raw`(?:<=?|>=?|than|exceed\w*|over|above|beyond|only)(?: the| a| an| its)?[ (]*$`), "limit"],
  [linearExpression(`(?:${outputWords})(?: \\w+){0,2}[ :=(]*$`), "output"],
  [
    linearExpression(
      String.raw`(?:requested|request|asked for|needs?|needed|counted|measured|estimated|resulted in|contains?|has|have|had|got|given|actual|current(?: \w+)?|length|keep the first|count(?: of)?|prompt|inputs?|messages|conversation|history|sent|send|provided|used|using|total(?:ing|s)?|too (?:long|large|big|many)|tokens?|is|was|are|at)(?: (?:is|of|at|about|approximately|around|least|a|total))*[ :=(]*$`,
    ),
    "input",
  ],
];

const nextToLimit = linearExpression(
  String.raw`\b(?:no more than|at most|up to|max(?:imum)?(?: of)?|limit(?: of| is|:)?|accepts|supports) \(?$`,
);

/**
 * Reads from a text of `plainText` how many tokens were sent, allowed and requested.
 *
 * @param numbers the codes and statuses of the error, which are not sizes
 */
export function readTokenSizes(text: string, numbers: ReadonlySet<number> = new Set()): TokenSizes {
  const sum = comparison(text, "+", ">");
  if (sum !== null) return sizes(sum[0], sum[2], sum[1]);
  const rest = comparison(text, ">", "-");
  if (rest !== null) return sizes(rest[2], rest[1], rest[0]);
  const range = /\[ ?\d{1,15} ?, ?(\d{1,15}) ?\]|between \d{1,15} and (\d{1,15})/.exec(text);
  if (range !== null) return sizes(null, Number(range[1] ?? range[2]), null);
  // An SDK puts the status in front of the text, and the status is no size.
  const figures = figuresIn(text.replace(/^\W{0,4}(?:[a-z ]{0,20}:? )?[45]\d\d\b(?! tokens)/, ""));
  return chooseSizes(figures.filter(({ value }) => !numbers.has(value)));
}

/** Matches three figures with these signs between them: "8000 + 4000 > 10000". */
function comparison(text: string, first: string, second: string): readonly [number, number, number] | null {
  for (const [sums] of text.matchAll(/\d+(?: [+>-] \d+)*/g)) {
    const parts = sums.split(" ");
    for (let at = 1; at + 3 < parts.length; at += 2) {
      if (parts[at] !== first || parts[at + 2] !== second) continue;
      return [Number(parts[at - 1]), Number(parts[at + 1]), Number(parts[at + 3])];
    }
  }
  return null;
}

function chooseSizes(figures: readonly Figure[]): TokenSizes {
  const of = (role: Role): Figure | undefined =>
    figures.find((figure) => figure.role === role && figure.isNamed) ?? figures.find((figure) => figure.role === role);
  const input = of("input")?.value ?? null;
  const limit = of("limit")?.value ?? null;
  const output = of("output")?.value ?? null;
  const usable = figures.filter(({ role }) => role !== "none");
  // "128000 is the window, 130000 came": only the larger of two such figures can be the prompt.
  if (usable.length === 2 && output === null && (input === null || limit === null)) {
    const [one = 0, other = 0] = usable.map(({ value }) => value);
    if (one !== other) return sizes(Math.max(one, other), Math.min(one, other), null);
  }
  return sizes(input, limit, output);
}

/** An error states a handful of figures. A text with more figures quotes other content. */
const mostFigures = 200;

function figuresIn(text: string): Figure[] {
  const found = [...text.matchAll(/(?<![\w.:#/-]|\d )\d{1,15}(?![\w/]|\.\d|-[a-z\d]|: ?\d)/g)].slice(0, mostFigures);
  return found.flatMap((match, index) => {
    const value = Number(match[0]);
    const previous = found[index - 1];
    const from = previous === undefined ? 0 : previous.index + previous[0].length;
    const left = text.slice(Math.max(from, match.index - 80), match.index);
    const right = text.slice(match.index + match[0].length, found[index + 1]?.index).slice(0, 40);
    // Bytes and characters are not tokens. Numbers below 16 are list indexes and codes.
    if (value < 16 || !Number.isSafeInteger(value) || /^ ?(?:bytes|characters|chars|[kmg]i?b\b|%)/.test(right))
      return [];
    return [{ value, ...roleOf(left, right) }];
  });
}

function roleOf(left: string, right: string): Pick<Figure, "role" | "isNamed"> {
  const after = namedAfter.find(([pattern]) => pattern.test(right));
  const isComparison = /^\)?(?: tokens?)? ?>/.test(right);
  if (isComparison) return { role: "input", isNamed: true };
  // "no more than 65536 input tokens" states a limit although it names the input.
  if (nextToLimit.test(left)) return { role: "limit", isNamed: true };
  if (after !== undefined) return { role: after[1], isNamed: true };
  const found = before.find(([pattern]) => pattern.test(left));
  return { role: found?.[1] ?? "unknown", isNamed: false };
}

function sizes(inputTokens: number | null, limitTokens: number | null, maxOutputTokens: number | null): TokenSizes {
  return { inputTokens, limitTokens, maxOutputTokens };
}
