/** Stores keep these fields of a message as columns beside its text, for filters and views. */
export interface PromotedColumns {
  readonly role: string | null;
  readonly toolName: string | null;
}

/** Lines that are not messages, and content that must not be read, have no columns. */
export const noPromotedColumns: PromotedColumns = { role: null, toolName: null };

/** A value that does not fit a column is left out, because the column only copies the text. */
export function promotedColumns(message: unknown): PromotedColumns {
  if (typeof message !== "object" || message === null) return noPromotedColumns;
  const { role, toolName } = message as { readonly role?: unknown; readonly toolName?: unknown };
  return { role: shortText(role), toolName: shortText(toolName) };
}

function shortText(value: unknown): string | null {
  const isShort = typeof value === "string" && value.length <= 256 && value.isWellFormed() && !value.includes("\0");
  return isShort ? value : null;
}
