/**
 * An array as PostgreSQL reads it. Its own, because the driver's goes element by element through a general conversion, which
 * costs more than the statement's other preparation together.
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
