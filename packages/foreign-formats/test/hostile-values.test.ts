import type { ForeignFormatName } from "../src/names.ts";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { readUnits, refusals } from "./read-units.ts";
import { isText, sampleTexts, textOf, type SampleText } from "./sample-texts.ts";

/** JSON texts that no field expects; as texts, because some of them no value gives. */
const hostile: readonly string[] = [
  "null",
  "true",
  "-1",
  "1e309",
  "9007199254740993.5",
  '""',
  '"\\u0000\\u001b[2J\\u202e"',
  '"\\ud800"',
  '"../../../etc/passwd"',
  '"__proto__"',
  '"constructor"',
  `"${"x".repeat(5000)}"`,
  "[]",
  "{}",
  "[null]",
  '[{"type":"text"}]',
  '[[["a"]]]',
  '{"__proto__":{"type":"user"},"constructor":{"prototype":{}},"toString":1,"length":-1}',
  `${"[".repeat(300)}${"]".repeat(300)}`,
];

/** Every place in a value: names of fields and numbers of elements, from the outside in. */
function* placesIn(value: unknown, place: readonly (string | number)[] = []): Generator<readonly (string | number)[]> {
  yield place;
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value))
    yield* placesIn(inner, [...place, Array.isArray(value) ? Number(name) : name]);
}

const mark = "the value that is replaced";

/** The value with another one at the place; without it where that is undefined. */
function replaced(value: unknown, [name, ...inner]: readonly (string | number)[], by: unknown): unknown {
  if (name === undefined) return by;
  if (Array.isArray(value)) return value.map((one, at) => (at === name ? replaced(one, inner, by) : one));
  const entries = Object.entries(value as object);
  return Object.fromEntries(entries.map(([key, one]) => [key, key === name ? replaced(one, inner, by) : one]));
}

/** Every text that a sample becomes when one value in it is hostile, or absent. */
function* mutants({ path, values }: SampleText): Generator<{ readonly what: string; readonly text: string }> {
  for (const [at, value] of values.entries()) {
    for (const place of placesIn(value)) {
      const marked = values.with(at, replaced(value, place, mark));
      const text = textOf({ path, values: marked });
      for (const by of hostile)
        yield {
          what: `${at} ${place.join(".")} = ${by.slice(0, 40)}`,
          text: text.replace(isText(path) ? mark : JSON.stringify(mark), () => by),
        };
      // A document without its value is an empty file.
      if (place.length === 0) continue;
      yield {
        what: `${at} ${place.join(".")} absent`,
        text: textOf({ path, values: values.with(at, replaced(value, place, undefined)) }),
      };
    }
  }
}

/** What else may stand in a file: units twice, in another order, blank, unknown, cut. */
function* orders({ path, values }: SampleText): Generator<{ readonly what: string; readonly text: string }> {
  yield { what: "each twice", text: textOf({ path, values: values.flatMap((value) => [value, value]) }) };
  yield { what: "all twice", text: textOf({ path, values: [...values, ...values] }) };
  yield { what: "backwards", text: textOf({ path, values: values.toReversed() }) };
  const text = textOf({ path, values });
  yield { what: "unknown lines", text: text.replaceAll("\n", '\n{"type":"novelty","id":7}\n\n[1]\n"x"\n') };
  yield { what: "carriage returns", text: text.replaceAll("\n", "\r\n") };
  yield { what: "a byte order mark", text: `\uFEFF${text}` };
}

const every = testSize({ short: 5, long: 1 });

describe("a file of a format with any value in any of its fields", () => {
  it.each(Object.keys(sampleTexts) as ForeignFormatName[])(
    "is read to its end, and no provider refuses it: %s",
    (name) => {
      const sample = sampleTexts[name];
      let count = 0;
      for (const { what, text } of [...orders(sample), ...mutants(sample)]) {
        count += 1;
        if (count > 6 && count % every !== 0) continue;
        const session = readUnits(name, text, sample.path);
        expect({ what, refused: refusals(session) }).toEqual({ what, refused: [] });
        // No value of a file is a prototype here.
        expect(Object.getPrototypeOf(session.reader.entry)).toBe(Object.prototype);
      }
      expect(count).toBeGreaterThan(150);
      expect(({} as { readonly type?: unknown }).type).toBeUndefined();
    },
  );

  it.each(Object.keys(sampleTexts) as ForeignFormatName[])(
    "cut at any byte loses the unit that is cut and no other: %s",
    (name) => {
      const sample = sampleTexts[name];
      const bytes = Buffer.from(textOf(sample));
      const whole = readUnits(name, bytes, sample.path);
      for (let size = 0; size <= bytes.length; size += every) {
        const cut = readUnits(name, bytes.subarray(0, size), sample.path);
        const complete = Math.max(0, cut.units - 1);
        const ids = cut.records.slice(0, complete).map(({ record }) => JSON.stringify(record));
        expect(ids).toEqual(whole.records.slice(0, complete).map(({ record }) => JSON.stringify(record)));
        expect({ size, refused: refusals(cut) }).toEqual({ size, refused: [] });
      }
    },
  );
});
