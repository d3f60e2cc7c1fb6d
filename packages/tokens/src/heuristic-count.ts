/**
 * Counts tokens by the kinds of characters, for a process that cannot load a vocabulary. It makes one pass and needs no
 * tables.
 *
 * A word costs one token per five letters. A run longer than any word costs one token per two letters. Digits cost one
 * token per three, signs one per two. Blank space costs one token, except for a single space before a word. A letter of
 * another alphabet costs half a token. Every character from the ideographs on costs one token.
 */
export function countByCharacterKind(text: string): number {
  let tokens = 0;
  let runKind: CharacterKind | null = null;
  let runLength = 0;
  for (let index = 0; index < text.length; index++) {
    const kind = kindOf(text.charCodeAt(index));
    if (kind === runKind) {
      runLength += 1;
      continue;
    }
    tokens += tokensOfRun(runKind, runLength, text.charCodeAt(index - 1));
    runKind = kind;
    runLength = 1;
  }
  return tokens + tokensOfRun(runKind, runLength, text.charCodeAt(text.length - 1));
}

type CharacterKind = "letter" | "digit" | "sign" | "blank" | "foreign" | "wide";

const charactersPerToken: Readonly<Record<Exclude<CharacterKind, "blank">, number>> = {
  letter: 5,
  digit: 3,
  sign: 2,
  foreign: 2,
  wide: 1,
};

/** A longer run of letters is data and not a word; vocabularies hold few tokens for data. */
const longestWord = 20;
const space = 0x20;

function tokensOfRun(kind: CharacterKind | null, length: number, lastUnit: number): number {
  if (kind === null) return 0;
  if (kind === "blank") return length === 1 && lastUnit === space ? 0 : 1;
  const wordLength = kind === "letter" ? Math.min(length, longestWord) : length;
  return Math.ceil(wordLength / charactersPerToken[kind]) + Math.ceil((length - wordLength) / 2);
}

function kindOf(unit: number): CharacterKind {
  if (unit >= 0x80) return unit < 0x2e80 ? "foreign" : "wide";
  if ((unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a)) return "letter";
  if (unit >= 0x30 && unit <= 0x39) return "digit";
  return unit <= space ? "blank" : "sign";
}
