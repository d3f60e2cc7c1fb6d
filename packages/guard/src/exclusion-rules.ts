import { linearExpression, type LinearExpression } from "@throughline/core/internal";
import type { FailureCategory } from "./overflow.ts";

/** Describes errors that are no overflow although they may mention tokens, context and limits. */
export interface ExclusionRule {
  readonly id: string;
  readonly category: FailureCategory;
  /** Matches text in the form that `plainText` returns. */
  readonly pattern: LinearExpression;
}

const perTime =
  "(?:per|a|each|every|in (?:one|a|1)|in the last)[ -](?:\\d+[ -])?(?:second|sec|minute|min|hour|day|week|month)|/ ?(?:s|sec|min|minute|hour|h|day)\\b";

/** These rules run before every overflow rule, because a false alarm costs history. */
export const vetoes: readonly ExclusionRule[] = [
  {
    id: "cancelled",
    category: "cancel",
    pattern: linearExpression(
      String.raw`context cancell?ed|\babort ?error\b|user abort error|(?:request|operation|call|it) was (?:aborted|cancell?ed)|\bcancell?ed by\b`,
    ),
  },
  {
    id: "timed-out",
    category: "timeout",
    pattern: linearExpression(
      String.raw`deadline exceeded|deadline has|\btime ?d? ?-?out\b|timeout (?:error|of|after|exceeded|limit)|took too long|too long to (?:answer|respond|reply|complete|finish|generate)`,
    ),
  },
  {
    id: "rate",
    category: "rate_limit",
    pattern: linearExpression(
      `rate[ -]?limit|ratelimit|throttl|too many requests|\\b(?:tpm|rpm|tpd|rpd|itpm|otpm)\\b|${perTime}|per-(?:minute|second|day|hour)|slow down|concurren|requests? frequency|try again (?:later|in \\d|after \\d)|please wait|retry (?:after|in) \\d|request limit (?:reached|exceeded)|maximum pending|(?:requests|calls) (?:has |have )?exceed|(?:max(?:imum)?|number of) (?:api )?(?:requests|calls)|burst|\\brate of\\b|enqueued|queue|frequency|resource ?exhausted`,
    ),
  },
  {
    id: "quota",
    category: "quota",
    pattern: linearExpression(
      String.raw`\bquotas?\b|billing|wallet|withdrawal|\bcredits?\b|\bbalance\b|payment|free tier|trial\b|monthly|daily|weekly|hourly|this (?:month|week|day|hour|billing|period)|today|upgrade (?:your|to a)|your (?:current )?plan\b|spend|insufficient funds|usage limits?|(?<!context |token |prompt |input )budget(?: has been| was| is)? (?:exceeded|exhausted)|max budget|(?:account|organi[sz]ation|workspace|project|team|user|customer|tenant|key)(?: \w+)? (?:token |usage |spending )?limit|token limit (?:for|of) (?:your|this) (?:account|organi[sz]ation|key|user|project|team)|used (?:up )?(?:all )?(?:of )?your (?:\w+ )?tokens|tokens? (?:left|remaining) (?:in|on) your|(?:you|you have|you ve) (?:exceeded|reached|hit|used(?: up)?) (?:the |your )(?:current |token |total |allotted )*(?:token )?(?:limit|allowance|allotment|tokens)(?! (?:of|for) (?:this|the) (?:model|request|conversation))(?! for (?:this|the) (?:model|request|conversation|prompt))|allotment`,
    ),
  },
  {
    id: "entitlement",
    category: "entitlement",
    pattern: linearExpression(
      String.raw`extra usage|subscription|entitle|not (?:yet )?(?:available|enabled|supported) (?:for|on|with|in) (?:this|your)|requires? (?:tier|beta|a (?:paid|higher))|\bbeta (?:is|header|feature)|access to (?:the )?(?:long|1m|extended)`,
    ),
  },
  {
    id: "credentials",
    category: "auth",
    pattern: linearExpression(
      String.raw`(?:api|access|auth\w*|bearer|refresh|session|security|csrf|xsrf|jwt|oauth|personal|service|device|id|identity|login|registration|push|captcha|verification) tokens?\b|tokens? (?:has |have |is |are )?(?:expired|invalid|revoked|malformed|missing|mismatch|lifetime|was not found|not found)|invalid tokens?\b|expired tokens?|api[ -]?key|unauthori[sz]ed|unauthenticated|authentication|permission|forbidden|credential|signature (?:expired|mismatch)|token expiry|token (?:expiration|lifetime|ttl)`,
    ),
  },
  {
    id: "network",
    category: "network",
    pattern: linearExpression(
      String.raw`fetch failed|econn|enotfound|eai again|socket hang up|epipe|connection (?:error|reset|refused|closed|lost)|network|dns|tls |certificate|headers? (?:too large|fields)|uri too long|url (?:is )?too long|header (?:size|overflow)`,
    ),
  },
  {
    id: "overloaded",
    category: "overloaded",
    pattern: linearExpression(
      String.raw`overloaded|(?:at|over|insufficient|no) capacity|server (?:is )?busy|high (?:demand|load)|temporarily(?! (?:switch|use|try|change|move))`,
    ),
  },
  {
    id: "memory",
    category: "memory",
    pattern: linearExpression(
      String.raw`kv[ -]?cache|out of memory|\boom\b|vram|system memory|gpu memory|cuda|allocat|memory (?:limit|is|required|requirement)|more (?:system )?memory|heap|stack size|call stack|recursion|max(?:imum)? depth|nest(?:ed|ing) (?:too deep|depth|level)|update depth`,
    ),
  },
  {
    id: "configuration",
    category: "config",
    pattern: linearExpression(
      String.raw`window (?:is |of \S+ is )?too small|minimum (?:is|of|context|value)|below the minimum|(?:user[ -]specified|requested|desired|given|invalid|unsupported|unknown|unrecogni[sz]ed|unexpected) (?:value for )?(?:(?:max )?context|max model|max seq|n ctx|num ctx|ctx)[ -]?(?:length|len|window|size)?\b|(?:max model len|n ctx|num ctx|ctx size|context (?:length|window|size)) (?:\(?\S+\)? )?(?:must|should|has to|cannot|is not a|is invalid|is not set|is unknown|not (?:set|configured|supported|specified))|derived max|n ctx train|rope|could not (?:determine|detect|find) .{0,30}(?:context|window)|(?:computing|calculating|determining|loading|fetching) (?:\w+ ){0,3}(?:context|window|tokens?)\b|(?:max(?:imum)?|number of) (?:tool calls|iterations|turns|steps|recursions|redirects|agents|sessions|connections|threads|choices|functions|tools|stop)|retries exceeded|too many (?:tools|functions|stop|retries|tool calls|images|files|attempts|redirects|choices|parameters|documents in|open)|stop sequences?|(?:tools?|functions?)(?: \w+){0,3} (?:exceed\w*|too many)|cache control|\bttl\b|logit bias|logprobs|model context protocol|batch (?:size|limit)|(?:execution|security|browser|transaction|tenant|request) context|array (?:is )?(?:too (?:long|large)|above)|\binput should (?:be|have) (?!.*tokens)|list should have|(?:max(?:imum)? )?content ?length size of`,
    ),
  },
  {
    id: "too-short",
    category: "param",
    pattern: linearExpression(
      String.raw`too (?:short|small|few)|must (?:be|have|contain) at least|minimum (?:length|number|size)|must not be empty|fewer than .{0,20}required`,
    ),
  },
  {
    id: "media",
    category: "image",
    pattern: linearExpression(
      String.raw`(?:image|images|picture|photo|audio|video|pdf|pdfs|pages|attachment|attachments|uploaded|upload|files?)\b[^.!?]{0,60}(?:exceed\w*|too (?:large|big|long|many)|larger than|longer than|max\w*|limit|dimension|pixels|resolution|duration|\d mb)|(?:maximum|max|too many|number of|more than) (?:\S+ )?(?:images?|pages|pdf|audio|videos?|files?|attachments?|documents)\b|dimensions? exceed|pixels`,
    ),
  },
  {
    id: "named-field",
    category: "param",
    pattern: linearExpression(
      String.raw`(?:\b(?:file|user|tool|function|agent|model|display|column|schema|parameter) ?names?|title|label|metadata|password|username|tool call id|\.id|call id|tool id|idempotency key|safety identifier|description|url|uri|query string|subject|email|commit message|log message|error message|branch|path|cookie|regex|key|keys|ids?|names?|pattern|enum|line|row|column)\b:? ?(?:field |value |string )?(?:\w+ )?(?:is |are |was )?(?:exceed\w*|too (?:long|large|big)|longer than|string too long|above max|must be at most)|\bmetadata (?:\w+ ){0,4}exceed`,
    ),
  },
  {
    id: "safety",
    category: "validity",
    pattern: linearExpression(
      String.raw`content (?:policy|filter|management)|flagged|moderation|safety (?:system|filter)|blocked|jailbreak|\bsafety\b|\brisk\b|severity|toxicity|harmful|recitation|unsafe`,
    ),
  },
];

/**
 * Matches a statement about the output budget, which is no overflow when the text mentions neither prompt nor window.
 */
export const outputVeto: LinearExpression = linearExpression(
  String.raw`(?:^|[^a-z])(?:outputbudget|(?:max(?:imum)? )?(?:output|completion|generated|generation|new|response|answer|reply|reasoning|thinking) (?:tokens?|length|limit|budget|size)|output|completion|budget tokens|thinking)(?![a-z])`,
);

/** These words show that a statement about the output is about the window as well. */
export const windowWords: LinearExpression = linearExpression(
  String.raw`context[ -]?(?:length|len|window|size|limit|capacity|budget)|(?:^|[^a-z])(?:prompts?|inputs?(?! (?:validation|error|argument|parameter|field|schema|format))|messages|conversation|history)(?![a-z])|(?:max(?:imum)?|total) (?:model|sequence|seq) len|(?:n|num)[ -]ctx`,
);

/** These rules run last and only name the category. They never decide whether an error is an overflow. */
export const labels: readonly ExclusionRule[] = [
  {
    id: "param",
    category: "param",
    pattern: linearExpression(
      String.raw`unsupported parameter|unknown (?:parameter|field)|field required|must be (?:greater|less)|invalid value|missing required|unrecogni[sz]ed (?:request )?(?:argument|parameter)|string (?:too long|above)`,
    ),
  },
  { id: "template", category: "template", pattern: linearExpression("template|jinja") },
  {
    id: "parse",
    category: "parse",
    pattern: linearExpression("syntax ?error|unexpected (?:token|end)|not valid json|in json|parse"),
  },
  {
    id: "validity",
    category: "validity",
    pattern: linearExpression(
      String.raw`tool use|tool result|tool call|function (?:call|response)|schema|extra inputs|not permitted|role|signature|thinking`,
    ),
  },
  {
    id: "server",
    category: "server",
    pattern: linearExpression(String.raw`internal (?:server )?error|crash|unexpectedly|bad gateway|unavailable`),
  },
];
