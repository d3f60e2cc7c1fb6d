import { describe, expect, it } from "vitest";
import { foreignFormatNames, type ForeignFormatName } from "../src/names.ts";
import { readUnits, type ReadSession } from "./read-units.ts";
import { isText, sampleTexts, type SampleText, textOf } from "./sample-texts.ts";

type Path = readonly (string | number)[];

/** The forms in which programs store a text: as it is, in parts, in an object, in JSON inside a text. */
const forms: readonly (readonly [what: string, of: (text: string) => unknown])[] = [
  ["a text", (text) => text],
  ["a text that is not JSON", (text) => `{"cut": "${text}`],
  ["a list of texts", (text) => [text]],
  ["parts", (text) => [{ type: "text", text }]],
  ["parts of a name that nobody knows", (text) => [{ type: "novelty", novelty: text }]],
  ["an object", (text) => ({ anything: text })],
  ["an object of a text", (text) => ({ type: "text", text })],
  ["an object of parts", (text) => ({ content: [{ type: "text", text }] })],
  ["JSON in a text", (text) => JSON.stringify({ output: text })],
];
const mark = "ODD-WORDS";

function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  const own = path.length === 0 ? [] : [path];
  if (typeof value !== "object" || value === null) return own;
  return [
    ...own,
    ...Object.entries(value).flatMap(([name, inner]) =>
      pathsOf(inner, [...path, Array.isArray(value) ? Number(name) : name]),
    ),
  ];
}

function replaced(value: unknown, [name, ...rest]: Path, by: unknown): unknown {
  if (name === undefined) return by;
  if (Array.isArray(value)) return value.map((one: unknown, at) => (at === name ? replaced(one, rest, by) : one));
  const fields = value as Readonly<Record<string, unknown>>;
  return { ...fields, [name]: replaced(fields[name], rest, by) };
}

function read(format: ForeignFormatName, sample: SampleText, at: Path, by: unknown): ReadSession {
  return readUnits(
    format,
    textOf({ ...sample, values: replaced(sample.values, at, by) as readonly unknown[] }),
    sample.path,
  );
}

/** What a model reads: words, thinking, and the arguments of calls. */
function shown({ context }: ReadSession): string {
  const blocks = context.messages.flatMap(({ content }) => content);
  return blocks
    .map((block) => JSON.stringify({ ...block, type: null, id: null, name: null, signature: null }))
    .join("\n");
}

/** A compaction or a rewind hides what is before it, so each beginning of a file is a sample, too. */
function beginningsOf(sample: SampleText): readonly SampleText[] {
  return sample.values.map((_value, at) => ({ ...sample, values: sample.values.slice(0, at + 1) }));
}

/** These fields name something, so their value is no text. */
const names: ReadonlySet<unknown> = new Set(["type", "url", "data", "mimeType"]);

/** The places where a text reaches the model. */
function placesOf(format: ForeignFormatName, sample: SampleText): readonly Path[] {
  return pathsOf(sample.values).filter((path) => {
    if (names.has(path.at(-1))) return false;
    const value = path.reduce<unknown>(
      (inner, name) => (inner as Record<string | number, unknown>)[name],
      sample.values,
    );
    return typeof value === "string" && shown(read(format, sample, path, mark)).includes(mark);
  });
}

describe("a text in another form, where a model gets a text", () => {
  it.each(foreignFormatNames.filter((name) => !isText(sampleTexts[name].path)))(
    "is kept and visible, or reported: %s",
    (format) => {
      const lost = new Set<string>();
      let count = 0;
      for (const sample of beginningsOf(sampleTexts[format]))
        for (const path of placesOf(format, sample))
          for (const [what, of] of forms) {
            count += 1;
            const session = read(format, sample, path, of(mark));
            if (!shown(session).includes(mark) && session.findings.length === 0) lost.add(`${path.join(".")}: ${what}`);
          }
      expect(count).toBeGreaterThan(forms.length);
      expect([...lost]).toEqual([]);
    },
  );
});
