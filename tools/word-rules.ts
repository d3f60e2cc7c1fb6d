/** Words of our own dialect, and what to write in their place. */
export interface DialectRule {
  readonly pattern: RegExp;
  readonly write: string;
}

export const mostSentenceWords = 30;
export const mostCellCharacters = 200;

export const dialect: readonly DialectRule[] = [
  { pattern: /\b(?:goes|gone|go|going|went) on with\b/i, write: "resumes or continues" },
  { pattern: /\b(?:is|are|was|were|be|been|being) (?:told|said)\b/i, write: "reports, prints or logs, with a subject" },
  { pattern: /\btells\b/i, write: "reports, prints or logs" },
  { pattern: /\bso many\b/i, write: "the number" },
  { pattern: /\bwhat is no(?:ne)?\b/i, write: "the name of the thing" },
  { pattern: /\bwhere there (?:is|are|was|were) (?:none|no)\b/i, write: "the name of the thing" },
  { pattern: /\bof which none\b/i, write: "the name of the thing" },
  { pattern: /\bcan be had\b|\bhad back\b|\bto be had\b/i, write: "can be restored, is available" },
  { pattern: /\b(?:mend|mends|mended|mending|brought back)\b/i, write: "fixed or restored" },
  { pattern: /\ba further (?:session|call|one|turn|try|attempt)\b/i, write: "a new, another" },
  { pattern: /\bbegins? so\b/i, write: "starts with" },
  { pattern: /\bby its form\b|\bby the form\b/i, write: "by rules, without a model" },
  { pattern: /\bwhat comes next\b|\bwhat it has\b/i, write: "the name of the thing" },
  { pattern: /\bpretends? to be\b/i, write: "nothing: delete the sentence" },
  { pattern: /\btakes? away\b|\btaken away\b/i, write: "removes" },
  { pattern: /\bas one that\b/i, write: "like one that" },
  { pattern: /\bnobody asked\b|\bis not a thing\b/i, write: "a subject and a verb" },
  { pattern: /\bsets? aside\b|\bput aside\b|\bkept aside\b|\bputs? aside\b/i, write: "moves to, keeps a copy in" },
  { pattern: /\bof a kind\b|\bof the one kind\b/i, write: "the name of the thing" },
  { pattern: /\banew\b/i, write: "again" },
  { pattern: /\bspeaks? of\b|\bspoken of\b|\bnothing is known of\b/i, write: "names, mentions" },
  {
    pattern:
      /\b\w*(?:behaviour|colour|favour|honour|labour|neighbour|summaris|recognis|initialis|serialis|normalis|organis|tokenis|optimis|minimis|authoris|canonicalis|customis|synchronis|finalis|analys(?:e|ed|es|ing)\b|licenc|catalogue|centre\b|grey\b|cancell(?:ed|ing)|labell|modell(?:ed|ing)|travell|signall)\w*/i,
    write: "the American spelling",
  },
];

/** A comment whose line starts with one of these is a fragment without a subject. */
export const hangingWords: RegExp = /^(?:Of|As|So|Where|What|Who|Whoever|Nobody|Somebody)\b/;

/** These words hide which process, caller or program a comment means. */
export const vagueSubjects: RegExp = /\b(?:nobody|whoever|somebody)\b/i;

/** A file in which a rule does not hold, and why. */
export interface AllowedWords {
  readonly path: string;
  readonly kind: "pattern" | "sentence" | "cell";
  readonly reason: string;
}

export const allowedWords: readonly AllowedWords[] = [
  {
    path: "packages/checkpoint/src/checkpoint-prompt.ts",
    kind: "sentence",
    reason: "The prompt shows a JSON object.",
  },
  {
    path: "packages/summarizer-providers/src/summary-prompt.ts",
    kind: "sentence",
    reason: "The prompt lists four headings with their content.",
  },
  {
    path: "packages/testing/src/ollama/ollama-adapter.ts",
    kind: "sentence",
    reason: "The error is Ollama's own.",
  },
];
