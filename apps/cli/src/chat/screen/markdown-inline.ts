import type { Token, Tokens } from "marked";
import type { Highlighter } from "./highlight.ts";
import type { Signs } from "./signs.ts";
import type { Styles } from "./styles.ts";

export interface MarkdownOptions {
  readonly styles: Styles;
  readonly signs: Signs;
  /** Whether the terminal opens links that are written with OSC 8. */
  readonly hasLinks: boolean;
  readonly highlighter: Highlighter;
}

const mostLevels = 16;

/** Returns the text of inline tokens with its styles. The text has passed `terminalSafe`. */
export function inlineText(tokens: readonly Token[], options: MarkdownOptions, level = 0): string {
  return tokens.map((token) => (level > mostLevels ? token.raw : oneText(token, options, level + 1))).join("");
}

function oneText(token: Token, options: MarkdownOptions, level: number): string {
  const { styles } = options;
  const inner = (): string => inlineText((token as Tokens.Generic).tokens ?? [], options, level);
  switch (token.type) {
    case "strong":
      return styles.bold(inner());
    case "em":
      return styles.italic(inner());
    case "del":
      return styles.strike(inner());
    case "codespan":
      return styles.cyan((token as Tokens.Codespan).text);
    case "br":
      return "\n";
    case "link":
      return linkText(inner(), token as Tokens.Link, options);
    case "image":
      return linkText(`[${(token as Tokens.Image).text}]`, token as Tokens.Image, options);
    case "escape":
      return (token as Tokens.Escape).text;
    case "text":
      return token.tokens === undefined ? withoutEntities((token as Tokens.Text).text) : inner();
    default:
      return token.raw;
  }
}

/** An address is shown in full, unless the terminal opens it at the text. */
function linkText(
  text: string,
  { href, text: plain }: Tokens.Link | Tokens.Image,
  { styles, hasLinks }: MarkdownOptions,
): string {
  // A space or control character would end the sequence, or begin another one.
  const isAddress = /^(?:https?|mailto|file):[!-~]{1,2000}$/.test(href);
  if (hasLinks && isAddress) return `\u001b]8;;${href}\u0007${styles.underline(text)}\u001b]8;;\u0007`;
  if (plain === href || `mailto:${plain}` === href) return styles.underline(text);
  return `${styles.underline(text)} ${styles.dim(`(${href})`)}`;
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: " ", "#39": "'" };

function withoutEntities(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_entity, name: string) => entities[name] ?? "");
}
