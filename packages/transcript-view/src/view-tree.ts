/**
 * Lists the elements that text of a transcript may become. A printer and a page know these and no others, so that no text
 * can name an element.
 */
export const viewTags = [
  "a",
  "blockquote",
  "code",
  "div",
  "em",
  "h4",
  "img",
  "li",
  "ol",
  "p",
  "pre",
  "span",
  "strong",
  "table",
  "td",
  "th",
  "tr",
  "ul",
] as const;

/** Lists the attributes that these elements may have. */
export const viewAttributes = ["alt", "class", "href", "rel", "src", "start"] as const;

export type ViewTag = (typeof viewTags)[number];
export type ViewAttributes = Readonly<Partial<Record<(typeof viewAttributes)[number], string>>>;

export interface ViewElement {
  readonly tag: ViewTag;
  readonly attrs: ViewAttributes;
  readonly children: readonly ViewNode[];
}

/** A text, or an element of the closed tree. */
export type ViewNode = string | ViewElement;

export function element(tag: ViewTag, children: readonly ViewNode[], attrs: ViewAttributes = {}): ViewElement {
  return { tag, attrs, children };
}
