import { longestText, takeApart } from "./embedded-json.ts";
import { retryDelayMs } from "./retry-delay.ts";
import { readProperty, ownKeys } from "./read-property.ts";

/** Holds the facts of an error, from its fields, its causes and its nested bodies. */
export interface ErrorFacts {
  readonly provider: string | null;
  /**
   * Holds the innermost HTTP status, which is the status of the model server itself. Null when the error states no
   * status.
   */
  readonly status: number | null;
  /** Holds every status from the outside in. A gateway's 429 counts although the error wraps another status. */
  readonly statuses: readonly number[];
  /** Holds machine-readable words: types, codes and class names. */
  readonly codes: readonly string[];
  readonly texts: readonly string[];
  /** Holds the names of the parameters that the error points at. */
  readonly params: readonly string[];
  readonly stopReasons: readonly string[];
  /** Holds error numbers, which must not count as sizes when a text repeats them. */
  readonly numbers: ReadonlySet<number>;
  readonly inputTokens: number | null;
  readonly limitTokens: number | null;
  readonly retryAfterMs: number | null;
}

interface OpenFacts {
  provider: string | null;
  readonly statuses: number[];
  readonly codes: Set<string>;
  readonly texts: Set<string>;
  readonly params: Set<string>;
  readonly stopReasons: Set<string>;
  readonly numbers: Set<number>;
  inputTokens: number | null;
  limitTokens: number | null;
  retryAfterMs: number | null;
  readonly seen: Set<object>;
  budget: number;
  characters: number;
}

const deepest = 10;
/** Limits the values that one error is searched for. An error may hold a whole response. */
const mostValues = 600;
/** Limits the characters of all texts that are searched. */
const mostCharacters = 1_048_576;

const statusKeys = ["status", "statusCode", "status_code", "httpStatus", "http_status", "httpStatusCode"];
const codeKeys = ["code", "type", "error_type", "errorType", "errorCode", "error_code", "__type", "reason", "Code"];
const textKeys = new Set(
  "message Message msg error error_message errorMessage error_msg errorMsg errmsg err_msg status_msg error_description detail details description title raw body responseBody response_body text cause data output errorText innerError inner_error original_error".split(
    " ",
  ),
);
const stopKeys = ["stopReason", "stop_reason", "finishReason", "finish_reason", "done_reason", "native_finish_reason"];
/** These keys hold what was sent. An error may echo them, and they state nothing about why the call failed. */
const echoKeys = new Set(
  "messages prompt input inputs request requestBody requestBodyValues request_body config url path stack headers responseHeaders tools system contents query params param loc ctx usage content choices".split(
    " ",
  ),
);

/** Collects the facts of any thrown value. Follows causes and nested bodies, and never throws. */
export function readErrorFacts(error: unknown): ErrorFacts {
  const open: OpenFacts = {
    provider: null,
    statuses: [],
    codes: new Set(),
    texts: new Set(),
    params: new Set(),
    stopReasons: new Set(),
    numbers: new Set(),
    inputTokens: null,
    limitTokens: null,
    retryAfterMs: null,
    seen: new Set(),
    budget: mostValues,
    characters: mostCharacters,
  };
  visit(error, 0, open);
  const texts = [...open.texts];
  if (open.statuses.length === 0) open.statuses.push(...texts.flatMap(statusInText));
  return {
    provider: open.provider,
    status: open.statuses.findLast((status) => status >= 400) ?? open.statuses.at(-1) ?? null,
    statuses: open.statuses,
    codes: [...open.codes],
    texts,
    params: [...open.params],
    stopReasons: [...open.stopReasons],
    numbers: open.numbers,
    inputTokens: open.inputTokens,
    limitTokens: open.limitTokens,
    retryAfterMs: open.retryAfterMs,
  };
}

function visit(value: unknown, depth: number, open: OpenFacts): void {
  if (depth > deepest || open.budget-- <= 0) return;
  if (typeof value === "string") return visitText(value, depth, open);
  if (typeof value !== "object" || value === null || open.seen.has(value)) return;
  open.seen.add(value);
  if (Array.isArray(value)) return void value.slice(0, 50).forEach((item) => visit(item, depth + 1, open));
  readMarks(value, open);
  const isRetry = visitLastAttempt(value, depth, open);
  visitChoices(readProperty(value, "choices"), depth, open);
  for (const key of keysOf(value)) {
    if (echoKeys.has(key) || (isRetry && (key === "errors" || key === "cause" || key === "lastError"))) continue;
    const inner = readProperty(value, key);
    if (typeof inner !== "string" || textKeys.has(key)) visit(inner, depth + 1, open);
  }
}

/** A retry wrapper holds the errors of several attempts. Only the last attempt decides. */
function visitLastAttempt(value: object, depth: number, open: OpenFacts): boolean {
  const errors = readProperty(value, "errors");
  const last = readProperty(value, "lastError") ?? (Array.isArray(errors) ? (errors.at(-1) as unknown) : undefined);
  if (typeof last !== "object" || last === null) return false;
  visit(last, depth + 1, open);
  return true;
}

/**
 * A stream that started with status 200 reports its failure in a choice. The other parts of a choice are the answer.
 */
function visitChoices(choices: unknown, depth: number, open: OpenFacts): void {
  if (!Array.isArray(choices)) return;
  for (const choice of choices.slice(0, 8)) {
    const error = readProperty(choice, "error");
    if (typeof error === "object" && error !== null) visit(error, depth + 1, open);
  }
}

/** `message`, `error` and `cause` of an Error are not enumerable, so `Object.keys` does not list them. */
function keysOf(value: object): readonly string[] {
  return [...new Set(["message", "error", "cause", ...ownKeys(value)])].slice(0, 80);
}

function visitText(text: string, depth: number, open: OpenFacts): void {
  open.characters -= Math.min(text.length, longestText);
  if (open.characters < 0) return;
  const { values, rest } = takeApart(text);
  for (const value of values) visit(value, depth + 1, open);
  const plain = rest.replace(/^[ \t]*(?:event|data):|\bdata:[ \t]*(?=$|\[DONE\])/gm, " ").trim();
  const stop = /^(?:stop_reason|finish_reason|finishReason|stopReason|done_reason)\s*[:=]\s*"?([\w-]+)"?$/.exec(plain);
  if (stop?.[1] !== undefined) open.stopReasons.add(stop[1]);
  else if (plain !== "") open.texts.add(plain);
}

function readMarks(value: object, open: OpenFacts): void {
  const provider = readProperty(value, "provider") ?? readProperty(value, "provider_name");
  if (open.provider === null && typeof provider === "string") open.provider = provider.toLowerCase();
  for (const key of statusKeys) addStatus(readProperty(value, key), open);
  for (const key of codeKeys) addCode(readProperty(value, key), open);
  for (const key of [...statusKeys, ...codeKeys]) {
    const number = Number(readProperty(value, key) ?? Number.NaN);
    if (Number.isSafeInteger(number)) open.numbers.add(number);
  }
  addClassName(value, open);
  for (const key of stopKeys) {
    const reason = readProperty(value, key);
    if (typeof reason === "string") open.stopReasons.add(reason);
  }
  const incomplete = readProperty(readProperty(value, "incomplete_details"), "reason");
  if (typeof incomplete === "string") open.stopReasons.add(incomplete);
  const param = readProperty(value, "param");
  if (typeof param === "string") open.params.add(param);
  open.inputTokens ??= figure(value, ["n_prompt_tokens", "prompt_tokens", "promptTokens"]);
  open.limitTokens ??= figure(value, ["n_ctx", "max_context_length", "context_length", "contextWindow"]);
  open.retryAfterMs ??= retryDelayMs(value);
}

function addStatus(value: unknown, open: OpenFacts): void {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  if (typeof status === "number" && status >= 100 && status < 600) open.statuses.push(status);
  // Google puts a word such as "INVALID_ARGUMENT" into the field where other providers put a number.
  else if (typeof value === "string" && value !== "") open.codes.add(value);
}

function addCode(value: unknown, open: OpenFacts): void {
  if (typeof value === "number" && value >= 400 && value < 600) open.statuses.push(value);
  if (typeof value !== "string" || value === "" || value.length > 200) return;
  if (/\s/.test(value)) open.texts.add(value);
  else open.codes.add(value);
}

function addClassName(value: object, open: OpenFacts): void {
  for (const name of [readProperty(value, "name"), readProperty(readProperty(value, "constructor"), "name")]) {
    if (typeof name === "string" && /(?:Error|Exception|Exceeded)$/.test(name) && name.length < 100)
      open.codes.add(name);
  }
}

function figure(value: object, keys: readonly string[]): number | null {
  for (const key of keys) {
    const found = readProperty(value, key);
    if (typeof found === "number" && Number.isSafeInteger(found) && found > 0) return found;
  }
  return null;
}

/**
 * Reads the status from texts such as "413 Request too large", "HTTP 400", "Ollama responded 400" and "status code:
 * 400".
 */
function statusInText(text: string): number[] {
  const match =
    /^\W{0,8}(?:[a-z ]{0,12}error:? ?)?(?:http ?)?([45]\d\d)\b(?! ?(?:tokens|[,.]\d))/i.exec(text.slice(0, 60)) ??
    /(?:status(?: code)?|https?(?:\/[\d.]{1,5})?|responded(?: with)?|error code|api error)[\s:=(]{0,8}([45]\d\d)\b/i.exec(
      text,
    );
  return match?.[1] === undefined ? [] : [Number(match[1])];
}
