/** Counts the tokens of a text. Pure and synchronous. */
export type CountTokens = (text: string) => number;

/** What counting has cost so far; for tests and benchmarks, which count work and not time. */
export interface CountWork {
  /** Slices handed to a tokenizer. */
  slices: number;
  /** UTF-16 code units handed to a tokenizer. */
  characters: number;
  /** Slices whose tokens were taken from those of their like in the same text. */
  sampledSlices: number;
  /** Messages whose count came out of the cache. */
  cacheHits: number;
}

/**
 * Byte pair merging is worse than linear in the length of a run without a break. 200,000 times "a" takes a tokenizer 42
 * seconds as a whole, and milliseconds in slices of this length. Slices over-count ordinary text by less than 0.5 %.
 */
const sliceChars = 1024;

/** In a slice of an expensive kind, runs are cut further: the cost is quadratic in this number and linear in the rest. */
const runChars = 32;
/** Of the slices of an expensive kind in one text, the first few are counted whole, */
const countedWhole = 2;
/** and of every n-th after them the start. */
const sampledEvery = 16;
const sampledChars = 256;

/**
 * Prose, code and tool output cost 100 to 250 microseconds a slice. A run without a break, or text with little ASCII,
 * costs up to 14,000, because no piece of it is in the vocabulary and each is merged byte by byte.
 */
type SliceKind = "plain" | "wide" | "unbroken";

const unbrokenChars = 200;
const unbrokenPattern = new RegExp(`[\\p{L}\\p{N}+/_=-]{${unbrokenChars}}|[^\\s\\p{L}\\p{N}]{${unbrokenChars}}`, "u");
const wideChars = 256;

function kindOfSlice(slice: string): SliceKind {
  let wide = 0;
  for (let at = 0; at < slice.length; at++) if (slice.charCodeAt(at) >= 0x80) wide += 1;
  if (wide >= wideChars) return "wide";
  return mayBeUnbroken(slice) && unbrokenPattern.test(slice) ? "unbroken" : "plain";
}

/**
 * Whether this number of characters follow one another without a space. A pattern would start again at each character,
 * and took longer than counting the tokens. A run of that length covers one of the places at that distance.
 */
function mayBeUnbroken(slice: string): boolean {
  for (let place = unbrokenChars - 1; place < slice.length; place += unbrokenChars) {
    let start = place;
    while (start >= 0 && !isBlank(slice.charCodeAt(start))) start -= 1;
    let end = place;
    while (end < slice.length && !isBlank(slice.charCodeAt(end))) end += 1;
    if (end - start > unbrokenChars) return true;
  }
  return false;
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
}

interface Sample {
  slices: number;
  /** Of the last slice that was counted: it stands for those up to the next, since a long text changes on its way. */
  tokensPerCharacter: number;
}

/**
 * Counts slice by slice, so that no text, however it is made, costs more than its length. Ordinary slices are all
 * counted. Of the expensive ones in a long text some are, and stand for the others of their kind.
 */
export function countInSlices(text: string, countTokens: CountTokens, work: CountWork): number {
  const samples = { wide: emptySample(), unbroken: emptySample() };
  const count: CountTokens = (part) => {
    work.slices += 1;
    work.characters += part.length;
    return countTokens(part);
  };
  let tokens = 0;
  for (let start = 0; start < text.length;) {
    const end = partEnd(text, start, sliceChars);
    const slice = text.slice(start, end);
    start = end;
    const kind = kindOfSlice(slice);
    if (kind === "plain") {
      tokens += count(slice);
      continue;
    }
    const sample = samples[kind];
    sample.slices += 1;
    tokens += countExpensive(slice, sample, count);
    if (sample.slices > countedWhole) work.sampledSlices += 1;
  }
  return Math.round(tokens);
}

function countExpensive(slice: string, sample: Sample, count: CountTokens): number {
  const isWhole = sample.slices <= countedWhole;
  if (!isWhole && sample.slices % sampledEvery !== 0) return slice.length * sample.tokensPerCharacter;
  const part = isWhole ? slice : slice.slice(0, partEnd(slice, 0, sampledChars));
  sample.tokensPerCharacter = countWithCutRuns(part, count) / part.length;
  return slice.length * sample.tokensPerCharacter;
}

function emptySample(): Sample {
  return { slices: 0, tokensPerCharacter: 0 };
}

const longRunPattern = new RegExp(
  `[\\p{L}\\p{M}]{${runChars}}|[^\\s\\p{L}\\p{N}]{${runChars}}|\\p{N}{${runChars}}`,
  "gu",
);

function countWithCutRuns(slice: string, countTokens: CountTokens): number {
  let tokens = 0;
  let counted = 0;
  for (const { index, 0: run } of slice.matchAll(longRunPattern)) {
    if (index > counted) tokens += countTokens(slice.slice(counted, index));
    tokens += countTokens(run);
    counted = index + run.length;
  }
  return counted < slice.length ? tokens + countTokens(slice.slice(counted)) : tokens;
}

function partEnd(text: string, start: number, length: number): number {
  const end = start + length;
  if (end >= text.length) return text.length;
  // Half a surrogate pair on each side of a cut would count as two unreadable characters.
  const isPairCut = isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end));
  return isPairCut ? end - 1 : end;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** The rule of the first source document: a token for every four characters, rounded down. Kept for comparison. */
export function countByLength(text: string): number {
  return Math.floor(text.length / 4);
}
