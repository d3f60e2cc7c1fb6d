const known = new WeakMap<object, string>();

/**
 * Returns a short name for the content of a block or message: 64 bits of FNV-1a over its JSON. The name finds the
 * message again after messages before it were added or removed. The hash only has to distinguish the parts of one
 * conversation.
 */
export function fingerprint(value: object): string {
  const kept = known.get(value);
  if (kept !== undefined) return kept;
  const name = hashOf(JSON.stringify(value));
  known.set(value, name);
  return name;
}

function hashOf(text: string): string {
  let low = 0x811c9dc5;
  let high = 0x9e3779b9;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x85ebca6b) ^ (low >>> 15);
  }
  return (low >>> 0).toString(36) + (high >>> 0).toString(36);
}
