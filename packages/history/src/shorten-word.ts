/**
 * Shortens a word of a title. A path keeps its file name, an address loses its scheme and query, and a key is masked.
 */
export function shortenWord(given: string): string {
  const word = given.replace(knownKey, "[key]");
  const start = /^["'(<[{@]{0,4}/.exec(word)?.[0].length ?? 0;
  let end = word.length;
  while (end > start && `"')>]},;:!?.…`.includes(word.charAt(end - 1))) end--;
  const inner = word.slice(start, end);
  const short = shortened(inner);
  if (short === inner) return word;
  // The `@` that marks a mentioned file is meaningless without its path, so both are removed.
  return word.slice(0, start).replaceAll("@", "") + short + word.slice(end);
}

function shortened(word: string): string {
  if (/^https?:\/\//i.test(word)) return shortAddress(word.slice(word.indexOf("//") + 2));
  const assigned = /^([\w.-]{1,60}[=:])(.{8,})$/.exec(word);
  if (assigned !== null && /key|token|secret|passw|auth|pwd/i.test(assigned[1] ?? "")) return `${assigned[1]}[key]`;
  if (isKey(word)) return "[key]";
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{20,27}$/i.test(word)) return word.slice(0, 8);
  const parts = word.split(/[\\/]/).filter((part) => part !== "");
  const isPath = parts.length >= 3 && /[\\/]/.test(word);
  return isPath ? shortened(parts.at(-1) ?? "") : word;
}

/** Keeps a short address `host/page` unchanged. A longer address keeps the host and the last part. */
function shortAddress(address: string): string {
  const end = address.search(/[?#]/);
  const plain = (end === -1 ? address : address.slice(0, end)).replace(/^www\./i, "");
  const host = plain.slice(plain.lastIndexOf("@", plain.indexOf("/") === -1 ? plain.length : plain.indexOf("/")) + 1);
  const parts = host.split("/").filter((part) => part !== "");
  const last = parts.at(-1) ?? "";
  if (parts.length < 3) return parts.map((part) => (isKey(part) ? "[key]" : part)).join("/");
  return `${parts[0]}/…/${isKey(last) ? "[key]" : last}`;
}

/** Matches secrets by their known prefixes, also inside a word of a script without spaces. */
const knownKey =
  /(?<![A-Za-z0-9])(?:sk-|sk_|pk_|rk_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|pypi-|dop_v1_|gsk_|xai-|SG\.|eyJ|\d{8,10}:(?=[\w-]{30}))[\w.+/=-]{8,}/g;

/** Detects text that looks like a secret: a long run of letters and digits that is not a word. */
function isKey(word: string): boolean {
  // A key of 40 base64 characters may hold slashes and would otherwise look like a path.
  if (/^(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/]{40}$/.test(word)) return true;
  if (word.length < 24 || !/^[\w+/=.-]+$/.test(word)) return false;
  const digits = word.replace(/[^0-9]/g, "").length;
  const isHex = /^[0-9a-f]+$/i.test(word);
  const isMixed = /[a-z]/.test(word) && /[A-Z]/.test(word);
  return isHex ? digits >= 4 : digits >= 4 && (isMixed || digits >= 6) && !/[./-].*[./-]/.test(word);
}
