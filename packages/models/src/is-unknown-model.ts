/** Whether an SDK's error says that the server knows no such model, or nothing of what was asked about it. */
export function isUnknownModel(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { status, status_code: code } = error as { readonly status?: unknown; readonly status_code?: unknown };
  return status === 404 || code === 404;
}
