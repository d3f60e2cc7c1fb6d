/** Holds the JSON values that a text contains, and the text around them. */
export interface TakenApart {
  readonly values: readonly unknown[];
  readonly rest: string;
}

/** A longer body is an HTML page or an echoed prompt. The facts about the error are at its ends. */
export const longestText = 65_536;
/** Limits the opening brackets that are tried, so that a text of brackets does not cost quadratic time. */
const mostStarts = 32;

/**
 * Finds the JSON values in an error text. Examples are the body that an SDK appends to the status, stream events, lines
 * of NDJSON, and dictionaries of Python clients.
 */
export function takeApart(text: string): TakenApart {
  const short = text.length > longestText ? `${text.slice(0, longestText / 2)} ${text.slice(-4096)}` : text;
  const values: unknown[] = [];
  let rest = "";
  let done = 0;
  let position = 0;
  for (let starts = 0; starts < mostStarts; starts++) {
    const start = firstBracket(short, position);
    if (start === -1) break;
    const end = closingBracket(short, start);
    const value = end === -1 ? undefined : parseLoosely(short.slice(start, end + 1));
    if (value === undefined) {
      position = start + 1;
      continue;
    }
    values.push(value);
    rest += `${short.slice(done, start)} `;
    done = end + 1;
    position = done;
  }
  return { values, rest: rest + short.slice(done) };
}

function firstBracket(text: string, from: number): number {
  for (let index = from; index < text.length; index++) {
    // An array matters only when it holds objects: "[1, 8192]" is part of a sentence.
    if (text[index] === "{" || (text[index] === "[" && /^\[\s*[{]/.test(text.slice(index, index + 8)))) return index;
  }
  return -1;
}

function closingBracket(text: string, start: number): number {
  let depth = 0;
  let quote = "";
  for (let index = start; index < text.length; index++) {
    const character = text[index] as string;
    if (quote !== "") {
      if (character === "\\") index += 1;
      else if (character === quote) quote = "";
    } else if (character === '"' || (character === "'" && /[{[,:\s]/.test(text[index - 1] ?? " "))) quote = character;
    else if (character === "{" || character === "[") depth += 1;
    else if ((character === "}" || character === "]") && --depth === 0) return index;
  }
  return -1;
}

function parseLoosely(text: string): unknown {
  return parseJson(text) ?? (/^[[{][\s{]*'/.test(text) ? parseJson(fromPython(text)) : undefined);
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    // The text is not JSON, so the caller keeps it as text.
    return undefined;
  }
}

/**
 * Converts a Python dictionary such as `{'code': None, 'message': "it's"}` to JSON, because Python clients put its text
 * into their errors.
 */
function fromPython(text: string): string {
  let json = "";
  for (let at = 0; at < text.length;) {
    const quote = text[at];
    const end = quote === '"' || quote === "'" ? endOfQuoted(text, at) : nextQuote(text, at);
    const part = text.slice(at, end);
    if (quote === '"') json += part;
    else if (quote === "'") json += JSON.stringify(part.slice(1, -1).replaceAll("\\'", "'"));
    else json += part.replace(/\b(?:None|True|False)\b/g, (word) => (word === "None" ? "null" : word.toLowerCase()));
    at = end;
  }
  return json;
}

/** Returns the position after the closing quote. Returns the end of the text when the quote is never closed. */
function endOfQuoted(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === text[start]) return at + 1;
  }
  return text.length;
}

function nextQuote(text: string, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== '"' && text[at] !== "'") at += 1;
  return at;
}
