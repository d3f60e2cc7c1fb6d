/**
 * Foreign text on one line: control characters, and those that nobody sees but a model reads (zero width, direction
 * marks, tags, variation selectors), become spaces.
 */
export function plainText(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu, " ");
}

/** Foreign text as a quotation: each of its lines begins with a bar, so that none can pose as a line of the answer. */
export function quotedText(text: string): string {
  return text
    .split("\n")
    .map((line) => `  | ${plainText(line)}`)
    .join("\n");
}

const mostRoleCharacters = 40;

/** A role as a word; any other text in quotation marks, because a transcript may state any text as a role. */
export function roleText(role: string): string {
  if (/^[A-Za-z][\w-]*$/.test(role) && role.length <= mostRoleCharacters) return role;
  return JSON.stringify(plainText(role.slice(0, mostRoleCharacters)).toWellFormed());
}
