/** Says what a part of a code is. Everything else keeps the color of the text. */
export type TokenKind = "comment" | "string" | "number" | "keyword";

export interface CodeToken {
  readonly kind: TokenKind;
  readonly from: number;
  readonly to: number;
}

/** Describes a language by the few things that a reader sees first. */
interface Language {
  readonly words: ReadonlySet<string>;
  readonly line: readonly string[];
  readonly block: readonly (readonly [start: string, end: string])[];
  /** Are the quotation marks of strings that end with their line. */
  readonly quotes: string;
  /** Are the marks of strings that may have several lines. */
  readonly long: readonly string[];
  readonly ignoresCase?: boolean;
}

const set = (words: string): ReadonlySet<string> => new Set(words.split("|"));
const slashes = { line: ["//"], block: [["/*", "*/"]] } as const;
const hash = { line: ["#"], block: [] } as const;

const c = set(
  "abstract|alignas|as|async|auto|await|base|bool|boolean|break|byte|case|catch|char|class|const|constexpr|continue|default|delegate|delete|do|double|else|enum|event|explicit|export|extends|extern|false|final|finally|float|for|foreach|friend|get|goto|if|implements|import|in|inline|instanceof|int|interface|internal|is|lock|long|namespace|native|new|noexcept|null|nullptr|object|operator|out|override|package|private|protected|public|readonly|record|ref|return|sealed|set|short|signed|sizeof|static|string|struct|super|switch|synchronized|template|this|throw|throws|transient|true|try|typedef|typename|uint|union|unsigned|using|var|virtual|void|volatile|while|yield",
);
const script: Language = {
  ...slashes,
  quotes: `"'`,
  long: ["`"],
  words: set(
    "abstract|any|as|async|await|boolean|break|case|catch|class|const|continue|debugger|declare|default|delete|do|else|enum|export|extends|false|finally|for|from|function|get|if|implements|import|in|infer|instanceof|interface|is|keyof|let|namespace|never|new|null|number|object|of|override|private|protected|public|readonly|return|satisfies|set|static|string|super|switch|this|throw|true|try|type|typeof|undefined|unknown|using|var|void|while|yield",
  ),
};
const languages = {
  script,
  c: { ...slashes, quotes: `"'`, long: [], words: c },
  python: {
    ...hash,
    quotes: `"'`,
    long: [`"""`, "'''"],
    words: set(
      "False|None|True|and|as|assert|async|await|break|case|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|self|try|while|with|yield",
    ),
  },
  shell: {
    ...hash,
    quotes: `"'`,
    long: [],
    words: set(
      "break|case|cd|continue|do|done|echo|elif|else|esac|exit|export|fi|for|function|if|in|local|return|set|source|then|unset|until|while",
    ),
  },
  go: {
    ...slashes,
    quotes: `"'`,
    long: ["`"],
    words: set(
      "any|bool|break|byte|case|chan|const|continue|default|defer|else|error|fallthrough|false|float64|for|func|go|goto|if|import|int|int64|interface|map|nil|package|range|return|rune|select|string|struct|switch|true|type|uint|var",
    ),
  },
  rust: {
    ...slashes,
    // An apostrophe also names a lifetime.
    quotes: `"`,
    long: [],
    words: set(
      "Self|as|async|await|bool|break|const|continue|crate|dyn|else|enum|extern|f64|false|fn|for|i32|i64|if|impl|in|let|loop|match|mod|move|mut|pub|ref|return|self|static|str|struct|super|trait|true|type|u32|u64|u8|unsafe|use|usize|where|while",
    ),
  },
  ruby: {
    ...hash,
    quotes: `"'`,
    long: [],
    words: set(
      "alias|and|begin|break|case|class|def|defined|do|else|elsif|end|ensure|extend|false|for|if|in|include|module|next|nil|not|or|private|protected|raise|redo|require|rescue|retry|return|self|super|then|true|undef|unless|until|when|while|yield",
    ),
  },
  swift: {
    ...slashes,
    quotes: `"`,
    long: [`"""`],
    words: set(
      "as|async|await|break|by|case|catch|class|companion|data|default|defer|do|else|enum|extension|false|final|for|fun|func|guard|if|import|in|init|inout|interface|internal|is|it|lateinit|let|mutating|nil|null|object|open|operator|override|package|private|protocol|public|return|sealed|self|static|struct|super|suspend|switch|this|throw|throws|true|try|typealias|val|var|when|where|while",
    ),
  },
  php: {
    line: ["//", "#"],
    block: [["/*", "*/"]],
    quotes: `"'`,
    long: [],
    words: set(
      "abstract|array|as|break|case|catch|class|clone|const|continue|declare|default|do|echo|else|elseif|empty|enum|extends|false|final|finally|fn|for|foreach|function|global|if|implements|import|include|instanceof|interface|isset|match|namespace|new|null|private|protected|public|readonly|require|return|static|switch|this|throw|trait|true|try|use|var|while|yield",
    ),
  },
  sql: {
    line: ["--"],
    block: [["/*", "*/"]],
    quotes: "'",
    long: [],
    ignoresCase: true,
    words: set(
      "add|all|alter|and|as|asc|begin|between|by|case|check|column|commit|constraint|create|cross|delete|desc|distinct|drop|else|end|exists|false|foreign|from|full|group|having|if|in|index|inner|insert|integer|into|is|join|key|left|like|limit|not|null|offset|on|or|order|outer|primary|references|returning|right|rollback|select|set|table|text|then|true|union|unique|update|using|values|view|when|where|with",
    ),
  },
  data: { ...hash, quotes: `"'`, long: [], words: set("false|null|off|on|no|true|yes") },
  json: { ...slashes, quotes: `"`, long: [], words: set("false|null|true") },
  css: { line: [], block: [["/*", "*/"]], quotes: `"'`, long: [], words: set("") },
  markup: { line: [], block: [["<!--", "-->"]], quotes: `"`, long: [], words: set("") },
} satisfies Readonly<Record<string, Language>>;

type LanguageName = keyof typeof languages;

/** Has the names of languages and the ends of file names. Both are short, and mean the same. */
const names: Readonly<Record<LanguageName, string>> = {
  script: "ts tsx mts cts typescript js jsx mjs cjs javascript",
  c: "c h cc cpp cxx hpp c++ cs csharp java scala dart objc m proto",
  python: "py pyi python python3",
  shell: "sh bash zsh fish shell console shellsession dockerfile makefile",
  go: "go golang",
  rust: "rs rust",
  ruby: "rb ruby ex exs elixir",
  swift: "swift kt kts kotlin",
  php: "php",
  sql: "sql sqlite postgresql mysql",
  data: "yaml yml toml ini conf env properties",
  json: "json jsonc json5 jsonl ndjson",
  css: "css scss less",
  markup: "html htm xml svg vue svelte",
};
const languageOf: ReadonlyMap<string, LanguageName> = new Map(
  (Object.keys(names) as LanguageName[]).flatMap((name) => names[name].split(" ").map((each) => [each, name])),
);

const mostCharacters = 200_000;
const wordStart = /[A-Za-z_$]/;
const wordPart = /[\w$]/;

/** Returns the parts of a code that get a color, in their order; none for a language that is not known. Takes linear time. */
export function codeTokens(text: string, name: string): readonly CodeToken[] {
  const known = languageOf.get(name.toLowerCase());
  if (known === undefined || text.length > mostCharacters) return [];
  return tokensOf(text, languages[known]);
}

function tokensOf(text: string, language: Language): readonly CodeToken[] {
  const tokens: CodeToken[] = [];
  for (let at = 0; at < text.length;) {
    const token = commentAt(text, at, language) ?? stringAt(text, at, language) ?? wordAt(text, at, language);
    if (token === null) at += 1;
    else {
      if (token.kind !== null) tokens.push({ kind: token.kind, from: at, to: token.to });
      at = token.to;
    }
  }
  return tokens;
}

type Found = { readonly kind: TokenKind | null; readonly to: number } | null;

function commentAt(text: string, at: number, { line, block }: Language): Found {
  for (const [start, end] of block)
    if (text.startsWith(start, at)) return { kind: "comment", to: endOf(text, end, at + start.length) };
  for (const start of line)
    // A mark inside of a word is no comment: an address, a color, `$#`.
    if (text.startsWith(start, at) && (at === 0 || /[\s;(){},]/.test(text.charAt(at - 1))))
      return { kind: "comment", to: lineEnd(text, at) };
  return null;
}

function stringAt(text: string, at: number, { quotes, long }: Language): Found {
  const mark = long.find((each) => text.startsWith(each, at));
  if (mark !== undefined) return { kind: "string", to: stringEnd(text, at, mark, true) };
  const quote = text.charAt(at);
  return quotes.includes(quote) ? { kind: "string", to: stringEnd(text, at, quote, false) } : null;
}

function stringEnd(text: string, at: number, mark: string, hasLines: boolean): number {
  for (let end = at + mark.length; end < text.length; end++) {
    const each = text.charAt(end);
    if (each === "\n" && !hasLines) return end;
    if (each === "\\") end += 1;
    else if (text.startsWith(mark, end)) return end + mark.length;
  }
  return text.length;
}

/** Takes a whole word or number, so that no part of one gets a color. */
function wordAt(text: string, at: number, { words, ignoresCase = false }: Language): Found {
  const first = text.charAt(at);
  const isWord = wordStart.test(first);
  if (!isWord && (first < "0" || first > "9")) return null;
  let to = at + 1;
  while (to < text.length && (wordPart.test(text.charAt(to)) || (!isWord && text.charAt(to) === "."))) to += 1;
  if (!isWord) return { kind: "number", to };
  const word = text.slice(at, to);
  return { kind: words.has(ignoresCase ? word.toLowerCase() : word) ? "keyword" : null, to };
}

function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at === -1 ? text.length : at + mark.length;
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at === -1 ? text.length : at;
}
