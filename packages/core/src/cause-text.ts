/** Returns the message of an error; anything else that was thrown as text. */
export function causeText(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
