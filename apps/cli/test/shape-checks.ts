/** A shape: the exact keys with a check of each value; written by hand from the contract, not from the code. */
/** Whether a value is what a shape wants there. */
type Check = (value: unknown) => boolean;

export type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

export const text = (value: unknown): boolean => typeof value === "string";
export const flag = (value: unknown): boolean => typeof value === "boolean";
export const count = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
export const number = (value: unknown): boolean => typeof value === "number";
export const anything = (): boolean => true;
export const list = (value: unknown): boolean => Array.isArray(value);
export const listOfTexts = (value: unknown): boolean => Array.isArray(value) && value.every(text);
export const or =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
export const one =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value);
export const object =
  (shape: Shape): Check =>
  (value) =>
    problemOf(value, shape) === null;
export const listOf =
  (shape: Shape): Check =>
  (value) =>
    Array.isArray(value) && value.every((item) => problemOf(item, shape) === null);

export function problemOf(value: unknown, shape: Shape): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "no object";
  const keys = Object.keys(value).toSorted().join(" ");
  const expected = Object.keys(shape).toSorted().join(" ");
  if (keys !== expected) return `keys ${keys}, not ${expected}`;
  const wrong = Object.entries(shape).find(([key, check]) => !check((value as Record<string, unknown>)[key]));
  return wrong === undefined ? null : `${wrong[0]} is ${JSON.stringify((value as Record<string, unknown>)[wrong[0]])}`;
}

export const kind: Shape = { kind: text };

/** The names of a session, and what it came from. */
export const sessionNames: Shape = {
  label: or(text),
  title: or(text),
  titleBy: or(text),
  name: text,
  program: or(text),
  cwd: or(text),
  forkedFrom: or(text),
  spawnedBy: or(text),
};
