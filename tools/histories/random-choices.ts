import { seededNumbers } from "../../packages/store-jsonl/test/contention.ts";

/** Choices that a seed determines. */
export interface RandomChoices {
  /** From 0 to below 1. */
  number(): number;
  /** A whole number from 0 to below the limit. */
  below(limit: number): number;
  of<Value>(values: readonly Value[]): Value;
  isTrue(probability: number): boolean;
}

export function createRandomChoices(seed: number): RandomChoices {
  const number = seededNumbers(seed);
  const below = (limit: number): number => Math.floor(number() * limit);
  return {
    number,
    below,
    of: (values) => values[below(values.length)] as (typeof values)[number],
    isTrue: (probability) => number() < probability,
  };
}

/** What has broken readers of lines, of JSON and of text before. */
export const awkwardTexts: readonly string[] = [
  "hello",
  "",
  "\u0000\u0001",
  "\ud800",
  "x\udc00y",
  "a\u2028b\u2029c",
  "__proto__",
  "line\nfeed\r\n",
  "\ufeff",
  '"_tl":{"seq":1}',
  ',"_tl":{"seq":9,"crc":1}}',
  "}",
  "\\",
  "\u{1F600}".repeat(5),
  "\u007f\u0085",
  "é".repeat(300),
];

const awkwardNumbers = [0, -0, 1e21, 1e-7, 2 ** 53 + 2, -1.5, 5e-324, Number.MAX_VALUE];
const awkwardFields = ["a", "1", "__proto__", "constructor", "", "\ud800", "_tl", "toJSON", "type", "x\u2028"];

/** A value of JSON, nested at most about 160 deep: stores take 200 levels. No text in it is longer than `longest`. */
export function randomValue(choices: RandomChoices, longest: number = Infinity, depth = 0): unknown {
  const inner = (): unknown => randomValue(choices, longest, depth + 1);
  switch (choices.below(depth > 3 ? 8 : 12)) {
    case 0:
      return choices.of(awkwardTexts);
    case 1:
      return choices.of(awkwardNumbers);
    case 2:
      return null;
    case 3:
      return choices.isTrue(0.5);
    case 4:
      return choices.isTrue(0.1) ? "L".repeat(Math.min(longest, choices.of([5000, 70_000, 1_000_000]))) : "s";
    case 5:
      return choices.of(awkwardTexts) + choices.of(awkwardTexts);
    case 6:
      return [];
    case 7:
      return {};
    case 8:
      return [inner(), inner()];
    case 9:
      return randomFields(choices, awkwardFields, 3, inner);
    case 10:
      return nested(choices, choices.of([5, 50, 150]));
    default:
      return { nested: inner() };
  }
}

/** Up to so many of these fields; a field named `__proto__` is one like the others. */
export function randomFields(
  choices: RandomChoices,
  names: readonly string[],
  most: number,
  value: () => unknown = () => randomValue(choices),
): Record<string, unknown> {
  const count = choices.below(most + 1);
  return Object.fromEntries(Array.from({ length: count }, () => [choices.of(names), value()]));
}

function nested(choices: RandomChoices, levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = choices.isTrue(0.5) ? [value] : { d: value };
  return value;
}
