/** Terminals cut longer texts. */
export const mostClipboardBytes = 74_000;

/** Most terminals take a text for the clipboard by this sequence; the others ignore it. */
export function clipboard(text: string): string {
  return `\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`;
}
