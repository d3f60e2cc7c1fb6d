/** A word as the text forms of tsvector and tsquery read it. */
export function lexeme(word: string): string {
  return `'${word.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
