const token = "NO_REPLY";

/**
 * Decides whether a reply is hidden from the user: after trimming, it must be NO_REPLY or start with it. The token
 * elsewhere in a reply hides nothing, because the conversation may be about it.
 */
export function isSilentReply(text: string): boolean {
  return /^NO_REPLY(?![A-Za-z0-9_])/.test(text.trim());
}

/** Decides whether a partial reply must be held back, because it may still turn out to be silent. */
export function mayBecomeSilent(partial: string): boolean {
  const text = partial.trimStart();
  return token.startsWith(text) || isSilentReply(text);
}
