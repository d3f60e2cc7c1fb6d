const token = "NO_REPLY";

/**
 * Whether a reply is not shown to the user: trimmed, it is the token or begins with it. The token anywhere else hides
 * nothing: it may be what the conversation is about.
 */
export function isSilentReply(text: string): boolean {
  return /^NO_REPLY(?![A-Za-z0-9_])/.test(text.trim());
}

/** Whether what has arrived of a reply is to be held back, because it may still turn out to be silent. */
export function mayBecomeSilent(partial: string): boolean {
  const text = partial.trimStart();
  return token.startsWith(text) || isSilentReply(text);
}
