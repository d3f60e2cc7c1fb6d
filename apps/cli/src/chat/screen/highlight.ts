import type core from "highlight.js/lib/core";
import type grammar from "highlight.js/lib/languages/bash";
import type { Style, Styles } from "./styles.ts";

/** Colors the lines of code; null until the grammar is loaded, and for a language without one. */
export interface Highlighter {
  /** Starts to load the grammar. Resolves when lines of the language can be colored. */
  load(language: string): Promise<void>;
  lines(code: readonly string[], language: string): readonly string[] | null;
}

const grammars: Readonly<Record<string, () => Promise<{ readonly default: typeof grammar }>>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const otherNames: Readonly<Record<string, string>> = {
  "c++": "cpp",
  cs: "csharp",
  docker: "dockerfile",
  golang: "go",
  html: "xml",
  js: "javascript",
  jsx: "javascript",
  kt: "kotlin",
  make: "makefile",
  mjs: "javascript",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  yml: "yaml",
  zsh: "bash",
};

/** A grammar takes about a millisecond for each of these; a longer line is data. */
const mostLineCharacters = 2000;

export function createHighlighter(styles: Styles): Highlighter {
  const colors: Readonly<Record<string, Style>> = {
    addition: styles.green,
    attr: styles.cyan,
    built_in: styles.cyan,
    comment: styles.dim,
    deletion: styles.red,
    keyword: styles.magenta,
    literal: styles.yellow,
    meta: styles.dim,
    number: styles.yellow,
    quote: styles.dim,
    regexp: styles.green,
    section: styles.bold,
    selector: styles.magenta,
    string: styles.green,
    tag: styles.magenta,
    title: styles.cyan,
  };
  let loaded: typeof core | null = null;
  const loads = new Map<string, Promise<void>>();
  const load = async (name: string): Promise<void> => {
    const grammar = grammars[name];
    if (grammar === undefined) return;
    const [library, { default: language }] = await Promise.all([import("highlight.js/lib/core"), grammar()]);
    library.default.registerLanguage(name, language);
    loaded = library.default;
  };
  return {
    load: (language) => {
      const name = grammarName(language);
      const started = loads.get(name) ?? load(name);
      loads.set(name, started);
      return started;
    },
    lines: (code, language) => {
      const name = grammarName(language);
      if (loaded?.getLanguage(name) === undefined || code.some((line) => line.length > mostLineCharacters)) return null;
      const { value } = loaded.highlight(code.join("\n"), { language: name, ignoreIllegals: true });
      return coloredLines(value, colors);
    },
  };
}

function grammarName(language: string): string {
  const name = language.toLowerCase();
  return Object.hasOwn(otherNames, name) ? (otherNames[name] ?? name) : Object.hasOwn(grammars, name) ? name : "";
}

/** The library gives HTML of one element, `span`. Each line begins and ends its own colors. */
function coloredLines(html: string, colors: Readonly<Record<string, Style>>): readonly string[] {
  const open: (Style | null)[] = [];
  let line = "";
  const lines: string[] = [];
  for (const part of html.split(/(<span class="[^"]{0,100}">|<\/span>|\n)/)) {
    if (part === "\n") {
      lines.push(line);
      line = "";
    } else if (part === "</span>") open.pop();
    else if (part.startsWith('<span class="')) open.push(colors[/hljs-([a-z]+(?:_in)?)/.exec(part)?.[1] ?? ""] ?? null);
    else if (part !== "") {
      const color = open.findLast((each) => each !== null);
      const text = withoutEntities(part);
      line += color === undefined || color === null ? text : color(text);
    }
  }
  return [...lines, line];
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };

function withoutEntities(html: string): string {
  return html.replace(/&(amp|lt|gt|quot|#x27);/g, (_entity, name: string) => entities[name] ?? "");
}
