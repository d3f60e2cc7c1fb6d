const schemes: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);
const mostCharacters = 2048;

/** States where a link leads. */
interface SafeLink {
  readonly href: string;
  /** Holds the host, or the address of a mail; a reader compares it with the text of the link. */
  readonly target: string;
}

/** Returns null for an address that a reader must not follow by a click: every scheme but http, https and mailto. */
export function safeLink(address: string): SafeLink | null {
  if (address.length > mostCharacters || !URL.canParse(address)) return null;
  const { protocol, href, host, pathname, username, password } = new URL(address);
  if (!schemes.has(protocol) || username !== "" || password !== "") return null;
  return { href, target: protocol === "mailto:" ? pathname : host };
}
