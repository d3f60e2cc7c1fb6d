/**
 * Holds the words of overflow messages, as sources of regular expressions over `plainText`. Rules combine the classes,
 * so the guard recognizes a new wording of known words. `lab/overflow-recall.ts` measures the loss when the words of
 * one provider are removed.
 */
export interface Lexicon {
  /** Names the model's window. */
  readonly window: readonly string[];
  /** Names a limit of any kind, so a rule must combine it with another class. */
  readonly limit: readonly string[];
  /** Names the content that was sent. */
  readonly sent: readonly string[];
  /** Describes a size above a limit with a verb. */
  readonly exceed: readonly string[];
  /** Describes a size above a limit with an adjective. */
  readonly large: readonly string[];
  /** Asks for a smaller request. */
  readonly reduce: readonly string[];
}

type LexiconClass = keyof Lexicon;

export const lexicon: Lexicon = {
  window: [
    "context[ -]?(?:length|len|window|size|limit|capacity|budget|space)s?",
    "(?:max(?:imum)?|model|supported|available|allowed) context",
    "(?:input |prompt |model |request |sequence )?tokens? (?:limit|maximum|cap|capacity|ceiling|budget)s?",
    "seq(?:uence)?[ -]?len(?:gth)?",
    "max(?:imum)? (?:allowed |supported )?(?:model|seq(?:uence)?|prompt|input|position|total|conversation|request token)s? (?:len(?:gth)?|tokens?|embeddings|size|context)",
    "max(?:imum)? (?:model|seq) len",
    "(?:n|num)[ -]?ctx",
    "max(?:imum)? (?:allowed |permitted )?(?:number of |count of |amount of |quantity of )?(?:input |prompt |context |total )*tokens?(?: allowed| permitted)?",
    "model max(?:imum)?(?: (?:length|len|tokens?))?",
    "(?:prompt|input) length",
    "model (?:window|limit|memory)",
    "(?:prompt|input) (?:window|limit|capacity)",
  ],
  limit: [
    "limits?",
    "max(?:imum)?",
    "allowed",
    "permitted",
    "allowance",
    "supported",
    "(?:supports?|accepts?|allows?|can (?:handle|take|accept|process|hold))",
    "capacity",
  ],
  sent: [
    "prompts?",
    "inputs?",
    "messages",
    "conversations?",
    "(?:chat |message )?history",
    "tokens",
    "token (?:count|length|usage|size|total)",
    "contexts?",
    "transcript",
    "thread",
    "dialog(?:ue)?",
    "sequence",
    "(?:user |your |the )text",
    "chat",
  ],
  exceed: [
    "exceed\\w*",
    "longer than",
    "larger than",
    "greater than",
    "bigger than",
    "higher than",
    "more (?:\\w+ ){0,2}than",
    "surpass\\w*",
    "overflow\\w*",
    "overr[au]n\\w*",
    "outgr[eo]w\\w*",
    "beyond",
    "over (?:the|its|your)",
    "above the",
    "past the",
    "(?:went|goes|going|is|are) over",
    "too (?:long|large|big|many) for",
    "violates?",
  ],
  large: ["too (?:long|large|big|lengthy|high)", "over[ -]?long", "oversized?", "over ?size"],
  reduce: [
    "reduc\\w+",
    "shorten\\w*",
    "decreas\\w+",
    "shrink\\w*",
    "trim\\w*",
    "truncat\\w+",
    "compress\\w*",
    "cut(?:ting)? down",
  ],
};

/**
 * Fills the slots of a rule. `{window}` becomes the alternatives of its class, `#` a number, and `~` a gap inside a
 * clause. A full stop ends the gap, but the dot in a path does not.
 */
export function fillSlots(template: string, words: Lexicon): string {
  return template
    .replace(/\{(\w+)\}/g, (_, name: string) => {
      const terms = words[name as LexiconClass];
      // An empty class must never match. An empty alternation would match everything.
      return terms.length === 0 ? "(?!)" : `(?<![a-z])(?:${terms.join("|")})(?![a-z])`;
    })
    .replaceAll("#", "\\d+")
    .replaceAll("~", "(?:[^.!?;\\n]|\\.(?=\\w)){0,60}?");
}
