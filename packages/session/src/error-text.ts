/** What was thrown, in words. Anything may be thrown: also what cannot be made a text. */
export function errorText(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error);
  } catch {
    // The value's own code failed, and that is no reason to lose what it was thrown for.
    return "Something was thrown that says nothing of itself.";
  }
}
