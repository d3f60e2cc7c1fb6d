/**
 * Writes an array literal of PostgreSQL. The driver's own conversion works element by element, and costs more than all
 * other preparation of the statement.
 */
export function arrayLiteral(values: readonly unknown[]): string {
  let text = "{";
  for (const [index, value] of values.entries()) {
    if (index > 0) text += ",";
    if (value === null || value === undefined) text += "NULL";
    else if (typeof value === "string") text += quoted(value);
    else if (value instanceof Uint8Array)
      text += `"\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("hex")}"`;
    else text += String(value);
  }
  return `${text}}`;
}

function quoted(text: string): string {
  return text.includes('"') || text.includes("\\") ? `"${text.replaceAll(/["\\]/g, "\\$&")}"` : `"${text}"`;
}
