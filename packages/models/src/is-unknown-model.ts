/** Recognizes an SDK's 404 error. The server does not know the model, or lacks the endpoint that describes it. */
export function isUnknownModel(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { status, status_code: code } = error as { readonly status?: unknown; readonly status_code?: unknown };
  return status === 404 || code === 404;
}
