/** The order of fields does not matter, because JSON objects are unordered. */
export function isSameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  const [one, other] = [left, right] as readonly Readonly<Record<string, unknown>>[];
  return names.every((name) => Object.hasOwn(right, name) && isSameJson(one?.[name], other?.[name]));
}
