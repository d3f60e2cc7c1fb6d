import { linearExpression, type LinearExpression, refused } from "@throughline/core/internal";

/** A text that an export replaces. */
export interface PlannedReplacement {
  /** Names the kind of the secret. */
  readonly what: string;
  readonly text: string;
  readonly replacement: string;
}

const urlPassword = "password in a URL";
const authorizationValue = "authorization value";
const ownToken = "Throughline token";
export const homeFolder = "home directory";
const ownPattern = "own pattern";

const tokenForm = /tl_[a-z0-9]{12}_[A-Za-z0-9_-]{43}/g;
const authorizationForm =
  /authorization["'\\]{0,4}\s{0,4}[:=]\s{0,4}["'\\]{0,4}((?:bearer|basic|token|digest|apikey)\s{1,4})?([^\s"'\\,;]{6,4096})/gi;
const bearerForm = /bearer\s{1,4}([A-Za-z0-9._~+/=-]{16,4096})/gi;
const passwordForm = /:\/\/[^\s/?#@:"'<>]{0,128}(:[^\s/?#@"'<>]{1,256}@)/g;

/** Finds what the rules of secretlint do not know: own tokens, authorization values, and passwords in URLs. */
export function* ownSecrets(text: string): Generator<PlannedReplacement, void, void> {
  for (const [token] of text.matchAll(tokenForm)) yield planned(ownToken, token);
  for (const [, scheme, value = ""] of text.matchAll(authorizationForm))
    if (isCredential(scheme, value)) yield planned(authorizationValue, value);
  for (const [, value = ""] of text.matchAll(bearerForm)) yield planned(authorizationValue, value);
  // The signs around a password belong to the replaced text, because a short password may be a word anywhere.
  for (const [, found = ""] of text.matchAll(passwordForm))
    yield { what: urlPassword, text: found, replacement: `:[${urlPassword}]@` };
}

/** Names of variables and words such as `required` are no credentials. */
function isCredential(scheme: string | undefined, value: string): boolean {
  return !/^[$<{[(%]/.test(value) && (scheme !== undefined || value.length >= 16 || /\d/.test(value));
}

export function planned(what: string, text: string): PlannedReplacement {
  return { what, text, replacement: `[${what}]` };
}

const homeForm = /(?:\/home|\/Users)\/[A-Za-z0-9._-]{1,64}|[A-Za-z]:\\{1,2}Users\\{1,2}[A-Za-z0-9._-]{1,64}/g;

/** Replaces the home directory of any user by `~`. @param home the one of this machine */
export function withoutHome(text: string, home: string): { readonly text: string; readonly count: number } {
  let count = 0;
  const sign = (): string => {
    count += 1;
    return "~";
  };
  const own = home.length > 1 && text.includes(home) ? text.replaceAll(home, sign) : text;
  const shown = own.replace(homeForm, sign);
  return { text: shown, count };
}

/** An expression of the user. The time of a search is proportional to the text. */
export interface OwnPattern {
  find(text: string): Generator<PlannedReplacement, void, void>;
}

const mostPatterns = 20;
const mostSourceCharacters = 500;
/** A match ends with its line. Longer lines are searched in pieces, so that a search of a piece stays short. */
const pieceCharacters = 2048;

/** @throws {ThroughlineError} INPUT_INVALID for an expression that has no linear form */
export function ownPatterns(sources: readonly string[]): readonly OwnPattern[] {
  if (sources.length > mostPatterns)
    throw refused("INPUT_INVALID", `At most ${mostPatterns} patterns are searched for.`);
  return sources.map(createPattern);
}

function createPattern(source: string): OwnPattern {
  if (source === "" || source.length > mostSourceCharacters)
    throw refused("INPUT_INVALID", `A pattern has 1 to ${mostSourceCharacters} characters.`, { pattern: source });
  const expression = checked(source, source);
  // Without groups of its own the expression could end at a `|`.
  const atStart = checked(`^(?:${source})`, source);
  return {
    *find(text) {
      for (const line of text.split("\n"))
        for (let at = 0; at < line.length; at += pieceCharacters)
          yield* matchesIn(line.slice(at, at + pieceCharacters), expression, atStart);
    },
  };
}

function* matchesIn(
  piece: string,
  expression: LinearExpression,
  atStart: LinearExpression,
): Generator<PlannedReplacement, void, void> {
  let rest = piece;
  for (let start = expression.search(rest); start >= 0 && start < rest.length; start = expression.search(rest)) {
    const length = Math.max(atStart.searchEnd(rest.slice(start)), 0);
    if (length > 0) yield planned(ownPattern, rest.slice(start, start + length));
    rest = rest.slice(start + Math.max(length, 1));
  }
}

function checked(source: string, stated: string): LinearExpression {
  try {
    const expression = linearExpression(source, "");
    expression.test("");
    return expression;
  } catch (error) {
    throw refused(
      "INPUT_INVALID",
      `The pattern ${JSON.stringify(stated)} has no linear form: back references, named groups and \\p are not supported.`,
      { pattern: stated },
      error,
    );
  }
}
