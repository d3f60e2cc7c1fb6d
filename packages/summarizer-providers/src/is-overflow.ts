import { linearExpression } from "@throughline/core/internal";

/** The beginning of a message states the problem. The rest may quote the prompt, which could match by accident. */
const mostCharacters = 8000;
const wordings = linearExpression(
  "context.{0,20}(?:length|window|size|limit)|(?:prompt|input|request).{0,30}too (?:long|large)|too many (?:input )?tokens|maximum.{0,20}(?:prompt|context|input)|longer than the context|reduce the length|exceeds?.{0,40}(?:context|token)",
  "i",
);
const notThis = /rate limit|tokens per (?:minute|day)|quota|per-minute|TPM/i;

/**
 * Returns whether an error means that the request was too long. It knows the wording of the three providers and most
 * other servers. Callers with the guard's classifier should pass that one, because it recognizes more errors.
 */
export function saysOverflow(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { status, status_code: statusCode, message, error: body } = error as Readonly<Record<string, unknown>>;
  const number = typeof status === "number" ? status : typeof statusCode === "number" ? statusCode : null;
  if (number === 413) return true;
  if (number !== null && number !== 400 && number !== 500) return false;
  const said = typeof message === "string" ? message.slice(0, mostCharacters) : "";
  const text = `${said} ${body === undefined ? "" : JSON.stringify(body).slice(0, mostCharacters)}`;
  return wordings.test(text) && !notThis.test(text);
}
