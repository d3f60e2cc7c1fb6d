/** Letters that repeat only after 65,536 of them, always the same. */
function scrambled(alphabet: string, length: number): string {
  let state = 12345;
  let text = "";
  while (text.length < length) {
    state = (state * 1103515245 + 12345) % 2147483648;
    text += alphabet[(state >>> 8) % alphabet.length] ?? "";
  }
  return text;
}

const letters = "abcdefghijklmnopqrstuvwxyz";
const base64 = `${letters.toUpperCase()}${letters}0123456789+/`;
const ideographs = Array.from({ length: 512 }, (_, index) => String.fromCharCode(0x4e00 + index * 37)).join("");

/** Texts that make a tokenizer slow or make it throw. */
export const hostileTexts: readonly (readonly [name: string, text: string])[] = [
  ["one letter", "a".repeat(200_000)],
  ["letters without a break", scrambled(letters, 200_000)],
  ["base64", scrambled(base64, 200_000)],
  ["ideographs", scrambled(ideographs, 200_000)],
  ["one ideograph", "字".repeat(200_000)],
  ["blank", " ".repeat(200_000)],
  ["emoji", "😀".repeat(100_000)],
  ["halves of surrogate pairs", "\ud83d".repeat(200_000)],
  ["special tokens", "<|endoftext|><EOT><|im_start|>".repeat(6_600)],
];
