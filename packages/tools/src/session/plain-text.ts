/**
 * Replaces control characters and invisible characters (zero width, direction marks, tags, variation selectors) by
 * spaces. A person does not see the invisible characters, but a model reads them.
 */
export function plainText(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu, " ");
}

/** Prefixes each line of foreign text with a bar, so that no line of the text can pose as a line of the answer. */
export function quotedText(text: string): string {
  return text
    .split("\n")
    .map((line) => `  | ${plainText(line)}`)
    .join("\n");
}

const mostRoleCharacters = 40;

/** A transcript may state any text as a role. Only a plain word is returned as it is; any other role is quoted. */
export function roleText(role: string): string {
  if (/^[A-Za-z][\w-]*$/.test(role) && role.length <= mostRoleCharacters) return role;
  return JSON.stringify(plainText(role.slice(0, mostRoleCharacters)).toWellFormed());
}
