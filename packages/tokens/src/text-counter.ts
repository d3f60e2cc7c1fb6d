/** Counts the tokens of a text synchronously. The same text must always give the same count. */
export type CountTokens = (text: string) => number;

/**
 * Counts the work of tokenizers. Tests and benchmarks check work instead of time, because time varies between machines.
 */
export interface CountWork {
  /** Counts the slices that a tokenizer received. */
  slices: number;
  /** Counts the UTF-16 code units that a tokenizer received. */
  characters: number;
  /** Counts the slices whose tokens were extrapolated from similar slices of the same text. */
  sampledSlices: number;
  /** Counts the messages whose count came from the cache. */
  cacheHits: number;
}

/**
 * Byte pair merging is worse than linear in the length of a run without a break. A tokenizer needs 42 seconds for
 * 200,000 times "a" as a whole, and milliseconds in slices of this length. Slices over-count ordinary text by less than
 * 0.5 %.
 */
const sliceChars = 1024;

/** Runs in expensive slices are cut to this length, because the cost is quadratic in it and linear in the rest. */
const runChars = 32;
/** The first slices of an expensive kind in one text are counted whole, because they calibrate the later samples. */
const countedWhole = 2;
/**
 * After the first slices, the start of every n-th slice is counted and stands for the others, because each costs up to
 * 14 ms.
 */
const sampledEvery = 16;
const sampledChars = 256;

/**
 * Prose, code and tool output cost 100 to 250 microseconds a slice. A run without a break, or text with little ASCII,
 * costs up to 14,000. The vocabulary holds no piece of such text, so the tokenizer merges it byte by byte.
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
 * Checks whether `unbrokenChars` characters follow one another without a space. A regular expression restarts at each
 * character, which took longer than counting the tokens. A run of that length covers at least one index of the stride,
 * so checking these is enough.
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
  /**
   * Holds the density of the last counted slice. It applies until the next counted slice, because a long text changes
   * along the way.
   */
  tokensPerCharacter: number;
}

/**
 * Counts slice by slice, so that the cost of any text stays linear in its length. All ordinary slices are counted. In a
 * long text, some expensive slices are counted and stand for the others of their kind.
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
  // A cut inside a surrogate pair would leave two unreadable characters, which count as extra tokens.
  const isPairCut = isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end));
  return isPairCut ? end - 1 : end;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/**
 * Counts one token per four characters, rounded down. The rule exists for comparison with the first source document.
 */
export function countByLength(text: string): number {
  return Math.floor(text.length / 4);
}
