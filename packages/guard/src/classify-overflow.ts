import { linearExpression, type LinearExpression } from "@throughline/core/internal";
import { readErrorFacts, type ErrorFacts } from "./error-facts.ts";
import { labels, outputVeto, vetoes, windowWords } from "./exclusion-rules.ts";
import { foreignRules } from "./foreign-rules.ts";
import { isRetryable } from "./is-retryable.ts";
import { fillSlots, lexicon, type Lexicon } from "./lexicon.ts";
import { overflowRules, type OverflowRule } from "./overflow-rules.ts";
import type { FailureCategory, OverflowClassification, OverflowKind } from "./overflow.ts";
import { plainText } from "./plain-text.ts";
import { delayInText } from "./retry-delay.ts";
import { statusCategory } from "./status-category.ts";
import { readTokenSizes, type TokenSizes } from "./token-sizes.ts";

/** Adds facts that `classifyOverflow` cannot read from the error. */
interface ClassifyOptions {
  /** Names the provider that answered, for errors that do not name it. @default null */
  readonly provider?: string | null;
}

/** Classifies what an error means for the window. */
export type OverflowClassifier = (error: unknown, options?: ClassifyOptions) => OverflowClassification;

interface Reading {
  readonly facts: ErrorFacts;
  readonly provider: string;
  /** Holds texts and codes in the normalized form that the rules match. */
  readonly lines: readonly string[];
  readonly joined: string;
  /** Leaves out the class names of SDKs, which only repeat the status: a spent quota is a RateLimitError too. */
  readonly said: string;
  readonly sizes: TokenSizes;
}

interface CompiledRule extends OverflowRule {
  readonly pattern: LinearExpression;
  readonly never: LinearExpression | null;
}

/** These servers run the model themselves. They answer 500 where a hosted provider answers 400. */
const localServers =
  /ollama|llama|lm ?-?studio|vllm|sglang|\btgi\b|local|mlx|kobold|exllama|gpt4all|tabby|oobabooga|triton/;
const windowStops = linearExpression(
  "context.*(?:exceed|length|window|limit|overflow|full)|^(?:model_length|prompt_too_long|input_too_long)$",
  "i",
);
const outputStops = /^model_length$/i;
const wholeRequest = linearExpression(
  String.raw`(?:total|whole|entire)(?: \w+){0,3} (?:request|payload|body|tokens)\b`,
);
const longString = linearExpression(String.raw`string (?:is )?(?:too long|above max length)\b.*maximum length:? \d`);
const totalOfBoth = linearExpression(
  String.raw`\btotal\b[^.;]{0,40}\b(?:prompts?|inputs?|messages)(?: tokens)? (?:and|plus|\+) (?:the )?(?:outputs?|completions?|predictions?|generat)`,
);
const sumOfBoth = linearExpression(
  String.raw`(?:inputs?|prompts?|messages?|either one)(?: \w+){0,3} (?:and|plus|or|\+)(?: \w+){0,3} (?:outputs?|completions?|predictions?|outputbudget|generation|response)|outputbudget(?: \w+){0,3} (?:and|plus|or|\+)|(?:outputs?|completions?|outputbudget)(?: \w+){0,3} (?:and|plus|\+)(?: \w+){0,3} (?:inputs?|prompts?|messages)|outputbudget~?.*(?:context|window)`,
);

/**
 * Limits the characters of one error's texts and codes together. The first texts state what happened, so the last ones
 * are dropped.
 */
const mostCharacters = 32_768;

/** The parameters exist for `lab/overflow-recall.ts`, which removes rules and words to measure the loss. */
export function createOverflowClassifier(
  rules: readonly OverflowRule[] = overflowRules,
  words: Lexicon = lexicon,
): OverflowClassifier {
  const compiled = rules.map((rule): CompiledRule => ({
    ...rule,
    pattern: linearExpression(fillSlots(rule.template, words)),
    never: rule.unless === undefined ? null : linearExpression(fillSlots(rule.unless, words)),
  }));
  return (error, options = {}) => classify(readError(error, options), compiled);
}

/**
 * Decides whether an error, or a stop reason, means that a request did not fit, and which part of it. Takes what any
 * client throws, a body as text or JSON, or `{provider, status, headers, body, message, stopReason}`; never throws.
 *
 * Precision has priority. Errors about rates, quotas, credentials, time or the output alone are excluded before any
 * rule for an overflow is tried. Shortening a history without need costs more than one failed call.
 */
export const classifyOverflow: OverflowClassifier = createOverflowClassifier();

/** Matches stop reasons that mean a full window without any further text. */
export function isWindowStop(reason: string): boolean {
  return windowStops.test(reason);
}

function readError(error: unknown, options: ClassifyOptions): Reading {
  const facts = readErrorFacts(error);
  const texts = withinBudget(facts.texts.map(plainText));
  const lines = withinBudget([...texts, ...facts.codes.map(plainText)]).filter((line) => line !== "");
  const read = texts.map((text) => readTokenSizes(text, facts.numbers));
  const best = read.find((sizes) => sizes.inputTokens !== null && sizes.limitTokens !== null);
  const partly =
    best ?? read.find((sizes) => sizes.limitTokens !== null) ?? read.find((sizes) => sizes.inputTokens !== null);
  return {
    facts,
    provider: (facts.provider ?? options.provider ?? "").toLowerCase(),
    lines,
    joined: lines.join(" \n "),
    said: withinBudget([...texts, ...facts.codes.filter((code) => !isClassName(code)).map(plainText)]).join(" \n "),
    sizes: {
      inputTokens: facts.inputTokens ?? partly?.inputTokens ?? null,
      limitTokens: facts.limitTokens ?? partly?.limitTokens ?? null,
      maxOutputTokens: partly?.maxOutputTokens ?? null,
    },
  };
}

function withinBudget(lines: readonly string[]): readonly string[] {
  let rest = mostCharacters;
  return lines.filter((line) => (rest -= line.length) >= 0);
}

function classify(reading: Reading, rules: readonly CompiledRule[]): OverflowClassification {
  const { facts, joined } = reading;
  const stop = facts.stopReasons.find(isWindowStop);
  if (stop !== undefined) return overflowOf(reading, outputStops.test(stop) ? "io" : "input", `stop:${stop}`);
  if (isCeiling(reading)) return overflowOf(reading, "ceiling", "ceiling");
  const vetoStatus = facts.statuses.map(statusCategory).find((category) => category !== null && category !== "server");
  if (vetoStatus !== undefined && vetoStatus !== null)
    return otherOf(reading, refined(vetoStatus, reading.said), "status");
  const veto = vetoes.find((rule) => rule.pattern.test(joined) && !isOfWholeRequest(rule.id, joined));
  if (veto !== undefined) return otherOf(reading, veto.category, veto.id);
  if (isBodyless(reading)) return classifyBodyless(reading);
  if (isShortString(joined)) return otherOf(reading, "param", "short-string");
  if (outputVeto.test(joined) && !windowWords.test(joined)) return otherOf(reading, outputCategory(joined), "output");
  const found = findOverflow(reading, rules);
  if (found !== null && isCredible(reading)) return overflowOf(reading, found.kind, found.rule);
  if (facts.status === 413) return overflowOf(reading, "bytes", "status:413");
  return otherOf(reading, labelOf(reading), found === null ? "none" : "status");
}

/**
 * A 500 of a hosted server is usually a fault of the server. It counts as an overflow only when the stated figures
 * prove one.
 */
function isCredible({ facts, provider, sizes, joined }: Reading): boolean {
  const isFault =
    statusCategory(facts.status) !== null || /service unavailable|bad gateway|internal server error/.test(joined);
  if (!isFault || localServers.test(provider) || localServers.test(joined)) return true;
  return sizes.inputTokens !== null && sizes.limitTokens !== null && sizes.inputTokens > sizes.limitTokens;
}

/**
 * Matches a rate limit that is smaller than this one request. Neither waiting nor shortening by a little helps then.
 */
function isCeiling({ joined }: Reading): boolean {
  const isRate =
    /too large|too big|reduce|must be reduced/.test(joined) && /rate|\btpm\b|per (?:minute|min|day)/.test(joined);
  const limit = /limit:? (\d{1,15})/.exec(joined);
  const requested = /requested:? (\d{1,15})/.exec(joined);
  if (!isRate || limit === null || requested === null || /used:? [1-9]/.test(joined)) return false;
  return Number(requested[1]) > Number(limit[1]);
}

/**
 * A text about the size of the whole request may list images among its parts. Such a text is not about an image limit.
 */
function isOfWholeRequest(vetoId: string, joined: string): boolean {
  return vetoId === "media" && wholeRequest.test(joined);
}

/** No text of a conversation has a limit below 1,024 characters. The error is about an id, a name or a key. */
function isShortString(joined: string): boolean {
  const start = longString.search(joined);
  const most = start === -1 ? null : limitOf(joined.slice(start), /maximum length:? (\d{1,15})/);
  return most !== null && most < 1024;
}

function isBodyless({ facts, joined }: Reading): boolean {
  const isEmpty = joined.replace(/status code|no body|\d{3}|bad request|error|api|[():]/g, "").trim() === "";
  return isEmpty && (facts.status === 400 || facts.status === 413);
}

/** Cerebras answers an overlong prompt without any text. From other providers an empty 413 means too many bytes. */
function classifyBodyless(reading: Reading): OverflowClassification {
  if (/cerebras/.test(reading.provider)) return overflowOf(reading, "input", "bodyless:cerebras");
  if (reading.facts.status === 413) return overflowOf(reading, "bytes", "status:413");
  return otherOf(reading, "unknown", "bodyless");
}

function findOverflow(reading: Reading, rules: readonly CompiledRule[]): { kind: OverflowKind; rule: string } | null {
  for (const rule of rules) {
    const line = reading.lines.find((text) => rule.pattern.test(text) && rule.never?.test(text) !== true);
    if (line === undefined || rule.provider?.test(reading.provider) === false) continue;
    if (rule.kind !== "item") return { kind: rule.kind === "input" ? inputOrBoth(reading) : rule.kind, rule: rule.id };
    if (isContentItem(reading)) return { kind: "item", rule: rule.id };
  }
  if (isProvenByFigures(reading)) return { kind: inputOrBoth(reading), rule: "figures" };
  const sentences = reading.lines.flatMap((line) => line.split(/[.!?;。！？；\n](?:\s|$)|[。！？；]/));
  for (const { language, subject, large, never } of foreignRules) {
    if (never.test(reading.joined)) continue;
    if (sentences.some((sentence) => subject.test(sentence) && large.test(sentence)))
      return { kind: inputOrBoth(reading), rule: `language:${language}` };
  }
  return null;
}

/** Two token figures, more sent than allowed, prove an overflow whatever the words between them are. */
function isProvenByFigures({ sizes: { inputTokens, limitTokens }, joined }: Reading): boolean {
  if (inputTokens === null || limitTokens === null || inputTokens <= limitTokens) return false;
  return (
    /\btokens?\b/.test(joined) &&
    /\b(?:requests?|requested|prompts?|inputs?|models?|messages|context|conversation)\b/.test(joined)
  );
}

/** Names, ids and metadata have length limits too. Shortening the history would not help there. */
function isContentItem({ facts, joined }: Reading): boolean {
  const named =
    /(?:invalid|parameter|field|for) ([^\s:]{1,80})[ :]{1,3}string/.exec(joined)?.[1] ?? numberedPart(joined);
  const param = facts.params.join(" ") || (named ?? "");
  if (/id\b|name|user|metadata|description|key|title/.test(param)) return false;
  const most = limitOf(joined, /(?:maximum|max) length:? (\d{1,15})/);
  return (
    /content|text|input|prompt|instructions|arguments|output|message/.test(param) || (most !== null && most >= 4096)
  );
}

/** Cuts `messages[3].content` out of a text, up to the next colon or comma. */
function numberedPart(joined: string): string | undefined {
  const at = joined.search(/\b(?:messages?|contents?|parts?|input)[[. ]{1,4}\d/);
  return at === -1 ? undefined : joined.slice(at).split(/[:,]/, 1)[0];
}

/**
 * A text that names the output beside the prompt is about their sum, unless its figures show that the prompt alone is
 * too large.
 */
function inputOrBoth({ sizes, joined, provider, facts }: Reading): OverflowKind {
  if (sizes.maxOutputTokens !== null) return "io";
  // The figure beside these words is the sum of prompt and output.
  if (totalOfBoth.test(joined)) return "io";
  if (sizes.inputTokens !== null && sizes.limitTokens !== null && sizes.inputTokens > sizes.limitTokens) return "input";
  // llama.cpp sends this text when the answer, not the prompt, reaches the end of the window.
  if (/context size has been exceeded/.test(joined) && (/llama/.test(provider) || facts.status === 500)) return "io";
  if (/mid-generation|generation (?:cannot|could not) (?:continue|go on|be completed)/.test(joined)) return "io";
  return sumOfBoth.test(joined) ? "io" : "input";
}

function isClassName(code: string): boolean {
  return /^[A-Z]\w*Error$/.test(code);
}

/** Providers answer an exhausted account with the status of a rate limit, so the text decides between the two. */
function refined(category: FailureCategory, said: string): FailureCategory {
  if (category !== "rate_limit") return category;
  const found = vetoes.filter(({ pattern }) => pattern.test(said)).map((rule) => rule.category);
  return (
    found.find((other) => other === "rate_limit" && !/extra usage/.test(said)) ??
    found.find((other) => other !== "auth" && other !== "rate_limit") ??
    category
  );
}

function outputCategory(joined: string): FailureCategory {
  return /outputbudget|tokens/.test(joined)
    ? /budget tokens|required/.test(joined)
      ? "param"
      : "output_cap"
    : "output";
}

function labelOf({ facts, joined }: Reading): FailureCategory {
  const label = labels.find(({ pattern }) => pattern.test(joined))?.category;
  return label ?? statusCategory(facts.status) ?? "unknown";
}

function overflowOf(reading: Reading, kind: OverflowKind, rule: string): OverflowClassification {
  const { joined, sizes } = reading;
  const isTokens = kind === "input" || kind === "io" || kind === "ceiling";
  return {
    overflow: true,
    kind,
    category: "context_overflow",
    inputTokens: isTokens ? sizes.inputTokens : null,
    limitTokens: isTokens ? sizes.limitTokens : null,
    maxOutputTokens: kind === "io" ? sizes.maxOutputTokens : null,
    limitBytes: kind === "bytes" ? bytesIn(joined) : null,
    limitCharacters:
      kind === "item" ? limitOf(joined, /(?:maximum|max) length:? (\d{1,15})|at most (\d{1,15})|> (\d{1,15})/) : null,
    retryAfterMs: reading.facts.retryAfterMs,
    isRetryable: false,
    rule,
  };
}

function otherOf(reading: Reading, category: FailureCategory, rule: string): OverflowClassification {
  const isCap = category === "output_cap";
  const retryAfterMs = reading.facts.retryAfterMs ?? delayInText(reading.joined);
  return {
    overflow: false,
    kind: null,
    category,
    inputTokens: null,
    limitTokens: null,
    maxOutputTokens: isCap ? capIn(reading.joined) : null,
    limitBytes: null,
    limitCharacters: null,
    retryAfterMs,
    isRetryable: isRetryable({ ...reading.facts, retryAfterMs }, category),
    rule,
  };
}

/** Reads the most tokens a model writes: "100000 > 64000", "at most 16384", "[1, 8192]". */
function capIn(joined: string): number | null {
  return limitOf(
    joined,
    /\d > (\d{1,15})|(?:at most|maximum of|up to|<=|less than or equal to|limit(?: is| of)?:?) (\d{1,15})|\[ ?\d{1,15} ?, ?(\d{1,15}) ?\]/,
  );
}

const statedBytes = linearExpression(String.raw`(?:limit|maximum|max|than)(?: \w+){0,3}[ :(]+\d+(?= ?bytes|$|\))`);

function bytesIn(joined: string): number | null {
  const over = /> (\d{1,15})/.exec(joined);
  const stated = statedBytes.search(joined);
  if (over !== null && (stated === -1 || over.index < stated)) return Number(over[1]);
  return stated === -1 ? null : limitOf(joined.slice(stated), /\b(\d{1,15})(?= ?bytes|$|\))/);
}

function limitOf(text: string, pattern: RegExp): number | null {
  const found = pattern
    .exec(text)
    ?.slice(1)
    .find((group) => group !== undefined);
  return found === undefined ? null : Number(found);
}
