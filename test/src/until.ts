/**
 * Polls a condition every millisecond, so that tests need no fixed sleeps.
 * @throws {Error} with the text of the condition, when it does not hold after 60 seconds
 */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came to be: ${isSo.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
