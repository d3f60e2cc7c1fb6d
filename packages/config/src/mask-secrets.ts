/**
 * Hides the secrets in a text: passwords of URLs (`postgres://ada:***@host/db?password=***`), the words after "Bearer"
 * and "Basic", and API keys with a known prefix. A password ends at the last `@` before white space, because passwords
 * are often written with an unescaped `@` or `/`. The function takes linear time, because an error may quote the whole
 * page of a proxy.
 */
export function maskSecrets(text: string): string {
  return text
    .replace(/[^\s"']+/g, (word) => (word.includes("@") ? maskPassword(word) : word))
    .replace(/([?&;][^\s=&;?]*=)([^\s&;"']*)/g, (all, name: string) => (secretName.test(name) ? `${name}***` : all))
    .replace(/\b(Bearer|Basic) +(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}/g, "$1 ***")
    .replace(/\b(tl_[a-z0-9]{12}_)[\w-]{43}/g, "$1***")
    .replace(/\b(sk|xoxb|xoxp|ghp|gho)([-_])([\w-]+)/g, (all, kind: string, dash: string, key: string) =>
      key.length < 12 ? all : `${kind}${dash}***`,
    );
}

const secretName = /password|passwd|pwd|secret|token|apikey|api_key/i;

function maskPassword(word: string): string {
  const user = /:\/\/[^:@/?#]*:/.exec(word);
  const hostAt = word.lastIndexOf("@");
  if (user === null) return word;
  const passwordAt = user.index + user[0].length;
  return hostAt < passwordAt ? word : `${word.slice(0, passwordAt)}***${word.slice(hostAt)}`;
}

/** JSON.stringify may fail on deeper levels, and no person reads them. */
const deepestShown = 100;

/** Hides the secrets in every text of a value, for the details of an error. A note replaces values below 100 levels. */
export function maskDeep(value: unknown): unknown {
  return maskAt(value, []);
}

function maskAt(value: unknown, inside: readonly object[]): unknown {
  if (typeof value === "string") return maskSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (inside.includes(value)) return "(the same again)";
  if (inside.length >= deepestShown) return "(nested too deeply to be shown)";
  const within = [...inside, value];
  if (Array.isArray(value)) return value.map((item) => maskAt(item, within));
  const entries = Object.entries(value).map(([key, item]) => [
    maskSecrets(key),
    typeof item === "string" && item !== "" && secretField.test(key) ? "***" : maskAt(item, within),
  ]);
  return Object.fromEntries(entries);
}

/** Errors of other programs may hold these fields, whose whole value is a secret. */
const secretField = /(?:password|passwd|secret|api[-_]?key|authorization|(?:access|auth|bearer)[-_]?token)$/i;
