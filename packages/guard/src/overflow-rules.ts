import type { OverflowKind } from "./overflow.ts";

/** Describes one wording of an overflow. `fillSlots` expands the templates. */
export interface OverflowRule {
  readonly id: string;
  readonly kind: Exclude<OverflowKind, "ceiling" | "io">;
  readonly template: string;
  /** Excludes the rule when the text also matches this template. */
  readonly unless?: string;
  /** Limits the rule to matching providers; absent means all. */
  readonly provider?: RegExp;
  /** A rule for a single wording states here why it is needed. */
  readonly because?: string;
}

/** A clause with these words is about time or about the answer. It does not connect a subject with its size. */
const time = "(?:took|take|taking|waited?|time|seconds?|minutes|output|response|completion|answer|reply)";

export const overflowRules: readonly OverflowRule[] = [
  // These rules match the limit of one item of the request.
  {
    id: "string-too-long",
    kind: "item",
    template: "string (?:is )?too long|string above max length|maximum string length|max length: #, actual: #",
  },
  {
    id: "item-too-long",
    kind: "item",
    template:
      "(?:messages?|contents?|input|parts?)[\\[. ]+#\\]?~(?:(?:{large}|{exceed}|at most|must not be longer)~(?:characters|chars|length #|# characters)|# (?:characters|chars)~(?:{limit}|{exceed}|at most)~#)",
  },
  // These rules match the byte limit of the request.
  {
    id: "payload-too-large",
    kind: "bytes",
    template:
      "(?:payload|(?<!no )body|entity|content|request|http request)(?: body| payload| size| entity| content)*(?:,? \\w+){0,5}?,? (?:{large}|{exceed}~(?:size|bytes|[kmg]i?b\\b|limit|max\\w*|#))",
    unless: "{window}|request~tokens|requested|(?:{limit}|size)(?: \\w+){0,2}:? # tokens",
  },
  {
    id: "too-many-bytes",
    kind: "bytes",
    template: "(?:too many|maximum (?:allowed )?(?:number|amount) of)(?: \\w+){0,3} bytes|# ?bytes (?:>|{exceed})~#",
  },
  {
    id: "size-limit-bytes",
    kind: "bytes",
    template:
      "{exceed}~(?:maximum|max|limit)\\w*(?: \\w+){0,3} (?:bytes|(?:payload|body|request) size)|(?:payload|body|request) (?:size )?limit (?:was |is |has been )?exceeded",
    because: "gateways word their byte limit freely; made-up wordings in the tests need it",
  },
  // These rules match the limit of the prompt.
  {
    id: "window-exceeded",
    kind: "input",
    template:
      "{window}(?: [\\w()]+){0,5} (?:exceed\\w*|overflow\\w*|surpassed|overr[au]n\\w*|reached|hit|violat\\w+|error)",
  },
  {
    id: "exceeds-window",
    kind: "input",
    template:
      "{exceed}~{window}|> (?:the )?{window}|{exceed} (?:(?:the|your|its|this|available|model|maximum) )*context(?! (?:deadline|cancel))|(?:hit|hits|hitting|reach\\w*) (?:\\w+ ){0,3}{window}",
  },
  {
    id: "sent-too-large",
    kind: "input",
    template: `{sent}(?:(?! ${time} )[^.!?;\\n]){0,60}?{large}(?! to (?!process|handle|fit|submit))|{large}(?: a)? {sent}`,
  },
  {
    id: "too-large-for-model",
    kind: "input",
    template:
      "too (?:long|large|big|many \\w+) (?:for|to fit)~(?:model|window)(?![a-z])|(?:your|user|input) message(?: is| was)? {large}",
  },
  { id: "sent-exceeds-limit", kind: "input", template: "{sent}~{exceed}~(?:{limit}|#)" },
  {
    id: "too-many-tokens",
    kind: "input",
    template:
      "too many (?:\\w+ ){0,3}tokens|too much (?:input|context|text)(?![a-z])|tokens?(?: \\w+){0,3} too (?:many|high|large)",
  },
  {
    id: "limit-of-sent-exceeded",
    kind: "input",
    template:
      "{sent} (?:length|size|count) (?:{limit})(?: \\w+){0,3} (?:exceeded|reached|hit)|{sent} (?:length|size) (?:was |is |has been )?exceeded",
  },
  {
    id: "window-stated",
    kind: "input",
    template:
      "(?:maximum|max|total|largest) (?:\\w+ )?(?:context|prompt|input|sequence|token)s?(?: \\w+)? (?:length|window|size|limit|count|tokens)(?: (?:of|for) \\S+(?: \\S+)?)?(?: is| are| of|:| =)+(?: only| about)? \\(?#",
  },
  { id: "sent-over-number", kind: "input", template: "{sent}~# (?:tokens )?\\(?(?:>|{exceed}) (?:the )?\\(?#" },
  {
    id: "sent-but-window",
    kind: "input",
    template:
      "{sent}~#~[,;:.]~(?:but|while|whereas|however|only)~(?:{window}|{limit})~#|{window}~#~[,;:.]~(?:but|while|whereas|however|got)~{sent}~#",
  },
  {
    id: "bound-of-model",
    kind: "input",
    template:
      "(?:supports?|accepts?|handles?|process|allows?|take|limited to)(?: (?:only|at most|up to|no more than|a maximum of|max(?:imum)?|more than|over))+ # (?:input |prompt |context )?tokens",
  },
  {
    id: "bound-of-sent",
    kind: "input",
    template:
      "(?:range of |length of |size of |number of )?(?:the )?(?:{sent}|{window})~(?:should be|must be|must have|must contain|has to be|needs to be|cannot be|can (?:be|have)|(?:is|are) (?:limited|restricted)|may (?:have|contain)|at most|no more than|up to)~(?:\\[ ?#, ?#|(?:<=?|less than|fewer than|under|below|at most|no more than|not exceed|within|up to|to|shorter than|(?:smaller|lower) than)~#|(?:>|longer than|more than) #|between #)",
  },
  {
    id: "no-room",
    kind: "input",
    template:
      "(?:ran|run|runs|running) out of (?:room|space|context)~(?:{window}|context|window|model)|{sent}~# tokens~(?:not|cannot) fit|(?:not|cannot|no longer|never|unable to|failed to) fit\\w*~(?:{window}|context|window|model|# tokens)|(?:no|insufficient|not enough|without|exhausted|ran out of) (?:\\w+ ){0,2}context (?:space|room|window|length|left|size|remaining)|(?:no room|no space|not enough room|not enough space)~(?:{window}|context|window)|{window}(?: \\w+){0,5} (?:full|exhausted|used up|filled up|saturated|not enough|insufficient)\\b|context(?: \\w+){0,2} (?:full|exhausted)\\b|context (?:\\w+ )?overflow\\w*",
  },
  {
    id: "reduce-the-prompt",
    kind: "input",
    template:
      "(?:use|using|try|send|provide|with) (?:an? )?(?:shorter|smaller) (?:prompts?|inputs?|messages|conversation|context)\\b|{reduce} (?:the |your )?(?:(?:overall |total )?(?:length|size|number of tokens|token count)s? )?(?:of |in )?(?:the |your )?(?:prompts?|inputs?|messages|conversation|context|history|chat)\\b",
    unless: "(?:temperature|penalty|images?|number of requests)",
  },
];
