/** Expressions that a file builds while it runs. */
export interface BuiltExpressionRow {
  readonly path: string;
  /** How many calls of `RegExp` stand in the file. */
  readonly count: number;
  /** What they are built from, and why no foreign text gets into them. */
  readonly parts: string;
  /** What they look like when built; checked as literals are. Empty where the engine only reads one character. */
  readonly samples: readonly { readonly source: string; readonly flags: string }[];
}

const plain = (...sources: readonly string[]): BuiltExpressionRow["samples"] =>
  sources.map((source) => ({ source, flags: "" }));

export const builtExpressions: readonly BuiltExpressionRow[] = [
  {
    path: "packages/core/src/linear/linear-expression.ts",
    count: 1,
    parts: "one character or class of an expression in our sources; it reads one character at a time",
    samples: [],
  },
  {
    path: "packages/core/src/linear/parse-expression.ts",
    count: 1,
    parts: "an expression in our sources, to have its syntax checked; no text is matched",
    samples: [],
  },
  {
    path: "packages/store-sqlite/src/store-file.ts",
    count: 3,
    parts: "the number of a file's inode; the text is what Linux says of its locks",
    samples: plain("WRITE\\s+(\\d+)\\s+\\S+:1 120 ", "\\s\\S+:1 1(?:2[0-8]) ", "READ\\s+(\\d+)\\s+\\S+:1 12[3-7] "),
  },
  {
    path: "packages/core/src/search-words.ts",
    count: 1,
    parts: "the class of scripts without spaces, which stands above it",
    samples: [{ source: "[\\p{Script=Han}][\\p{Script=Han}\\p{M}]*|[^\\p{Script=Han}]+", flags: "gu" }],
  },
  {
    path: "packages/guard/src/retry-delay.ts",
    count: 1,
    parts: "the three expressions above it",
    samples: [
      {
        source:
          "\\b(?:in|after)\\s{1,8}(?=\\d)(?:(\\d{1,9})\\s?h(?:(?:ou)?rs?)?\\s?)?(?:(\\d{1,9})\\s?m(?:in(?:ute)?s?)?(?![a-z])\\s?)?(?:(\\d{1,9}(?:\\.\\d{1,9})?)\\s?(ms|milliseconds?|s|sec(?:ond)?s?))?(?![a-z\\d])",
        flags: "i",
      },
    ],
  },
  {
    path: "packages/openclaw-format/src/line-envelope.ts",
    count: 2,
    parts: "the marker of an envelope, and an expression for a number that stands above it",
    samples: [
      ...plain('[\\u2028\\u2029]|"_tl":'),
      {
        source:
          '\\{"seq":(0|[1-9]\\d{0,14})(?:,"batch":\\[(0|[1-9]\\d{0,14}),(0|[1-9]\\d{0,14})\\])?(?:,"at":(0|[1-9]\\d{0,14}))?(?:,"crc":(0|[1-9]\\d{0,14}))?\\}',
        flags: "y",
      },
    ],
  },
  {
    path: "packages/tokens/src/text-counter.ts",
    count: 2,
    parts: "two constants, numbers",
    samples: [
      { source: "[\\p{L}\\p{N}+/_=-]{200}|[^\\s\\p{L}\\p{N}]{200}", flags: "u" },
      { source: "[\\p{L}\\p{M}]{32}|[^\\s\\p{L}\\p{N}]{32}|\\p{N}{32}", flags: "gu" },
    ],
  },
];
