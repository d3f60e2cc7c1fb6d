/** Quotes a word for the text form of tsvector and tsquery. */
export function lexeme(word: string): string {
  return `'${word.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
