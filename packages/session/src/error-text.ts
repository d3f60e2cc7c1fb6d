/** Converts a thrown value to text. Any value may be thrown, even one whose conversion to text throws. */
export function errorText(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error);
  } catch {
    // The conversion itself threw. That must not hide the original failure.
    return "Something was thrown that says nothing of itself.";
  }
}
