import { ThroughlineError } from "@throughline/core";

/**
 * Matches line breaks, other control characters, and characters above one byte. White space around a value is not sent,
 * so it is allowed.
 */
const notInHeaders = /[^\t\u0020-\u007e\u0080-\u00ff]/;

/**
 * Checks that a header can carry the key and the header values. `fetch` quotes an invalid value in its error, so a key
 * with a line break would appear in logs.
 * @throws {ThroughlineError} INPUT_INVALID without repeating the value
 */
export function assertHeaderValues(apiKey: string | null, headers: Readonly<Record<string, string>> = {}): void {
  if (apiKey !== null && notInHeaders.test(apiKey.trim()))
    throw refused("The key of the model's provider holds a character that no header can carry.");
  for (const [name, value] of Object.entries(headers)) {
    if (notInHeaders.test(value.trim()))
      throw refused(`The header ${JSON.stringify(name)} holds a character that no header can carry.`);
  }
}

function refused(message: string): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", message, {
    remedy: "Copy it again: a line break, a quotation mark or an ellipsis of a text program may have come with it.",
  });
}
