import type { OptionKind } from "./option-checks.ts";

export interface WrongOption {
  readonly title: string;
  readonly argument: string;
  readonly options: Readonly<Record<string, unknown>>;
}

const candidates: readonly (readonly [string, unknown])[] = [
  ["a text", "\u0001 no such choice"],
  ["an empty text", ""],
  ["a number", 7],
  ["a fraction", 0.5],
  ["a negative number", -1],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["a bigint", 7n],
  ["true", true],
  ["null", null],
  ["an array", [7, {}]],
  ["an object", { noSuchField: 1 }],
  ["a function", () => 7],
  ["a symbol", Symbol("s")],
];

/**
 * Returns every way in which options can be wrong, for tests of a call. A name resembles an option's name, a type is
 * wrong, a value is out of range, or an option is missing. Options within objects are covered too.
 * @param table the table that the call checks its options with
 * @param valid options that the call takes, with all that are required. Default: none
 */
export function wrongOptions(
  table: Readonly<Record<string, OptionKind>>,
  valid: Readonly<Record<string, unknown>> = {},
): readonly WrongOption[] {
  return [...misspelt(table, valid), ...wrongValues(table, valid)];
}

function misspelt(
  table: Readonly<Record<string, OptionKind>>,
  valid: Readonly<Record<string, unknown>>,
): readonly WrongOption[] {
  return Object.keys(table).map((name) => {
    const wrong = `${name.slice(0, 1)}${name.slice(0, 1)}${name.slice(1)}_`;
    return { title: `${wrong} for ${name}`, argument: wrong, options: { ...valid, [wrong]: valid[name] ?? 1 } };
  });
}

function wrongValues(
  table: Readonly<Record<string, OptionKind>>,
  valid: Readonly<Record<string, unknown>>,
): readonly WrongOption[] {
  return Object.entries(table).flatMap(([name, kind]): readonly WrongOption[] => {
    const refused = candidates.filter(([, value]) => !kind.accepts(value));
    const values = refused.map(([what, value]) => ({
      title: `${name}: ${what}`,
      argument: name,
      options: { ...valid, [name]: value },
    }));
    const { [name]: _, ...others } = valid;
    const missing = kind.isRequired === true ? [{ title: `no ${name}`, argument: name, options: others }] : [];
    return [...values, ...missing, ...wrongFields(name, kind, valid), ...wrongItems(name, kind, valid)];
  });
}

function wrongFields(
  name: string,
  { fields }: OptionKind,
  valid: Readonly<Record<string, unknown>>,
): readonly WrongOption[] {
  if (fields === undefined) return [];
  const inside = (valid[name] ?? {}) as Readonly<Record<string, unknown>>;
  return wrongOptions(fields, inside).map(({ title, argument, options }) => ({
    title: `${name}.${title}`,
    argument: `${name}.${argument}`,
    options: { ...valid, [name]: options },
  }));
}

function wrongItems(
  name: string,
  { items }: OptionKind,
  valid: Readonly<Record<string, unknown>>,
): readonly WrongOption[] {
  if (items === undefined) return [];
  return candidates
    .filter(([, value]) => !items.accepts(value))
    .map(([what, value]) => ({
      title: `${name}[0]: ${what}`,
      argument: `${name}[0]`,
      options: { ...valid, [name]: [value] },
    }));
}
