/** What is sent, up to where a later call may go on: without the brackets and quotes that close it. */
export function openEnd(messages: readonly unknown[]): string {
  return JSON.stringify(messages).replace(/["\]}]+$/, "");
}

/** How many UTF-16 code units two requests have in common at the beginning. */
export function commonLength(one: string, other: string): number {
  let low = 0;
  let high = Math.min(one.length, other.length);
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (one.startsWith(other.slice(low, middle), low)) low = middle;
    else high = middle - 1;
  }
  return low;
}
