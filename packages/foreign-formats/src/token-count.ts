/** Returns a count of tokens that a program states; 0 for anything but a whole number from 0 on. */
export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
