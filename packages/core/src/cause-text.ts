/**
 * Returns the message of an error; anything else that was thrown as text. Any value may be thrown, even one whose
 * conversion to text throws.
 */
export function causeText(cause: unknown): string {
  try {
    return cause instanceof Error ? String(cause.message) : String(cause);
  } catch {
    // The conversion itself threw. That must not hide the original failure.
    return "Something was thrown that says nothing of itself.";
  }
}
