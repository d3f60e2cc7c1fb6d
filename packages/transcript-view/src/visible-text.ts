const hidden =
  /[^\P{Cc}\n\t]|[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/**
 * Replaces invisible characters, and marks that change the order of others, by signs: `␛`, `⟨U+202E⟩`. Line feeds and tabs
 * stay.
 */
export function visibleText(text: string): string {
  return text.toWellFormed().replaceAll("\r\n", "\n").replace(hidden, signOf);
}

function signOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
