/** Of a message, what stores keep as columns for filters and views beside its text. */
export interface PromotedColumns {
  readonly role: string | null;
  readonly toolName: string | null;
}

/** For lines that are not messages, and for content that must not be read. */
export const noPromotedColumns: PromotedColumns = { role: null, toolName: null };

/** What does not fit a column is left out: it is only a copy of what the text says. */
export function promotedColumns(message: unknown): PromotedColumns {
  if (typeof message !== "object" || message === null) return noPromotedColumns;
  const { role, toolName } = message as { readonly role?: unknown; readonly toolName?: unknown };
  return { role: shortText(role), toolName: shortText(toolName) };
}

function shortText(value: unknown): string | null {
  const isShort = typeof value === "string" && value.length <= 256 && value.isWellFormed() && !value.includes("\0");
  return isShort ? value : null;
}
