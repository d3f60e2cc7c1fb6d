import type { ToolDefinition } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import type { OfflineResult, OfflineView } from "./offline-view.ts";
import { parseFields } from "./wire-fields.ts";

/** Programs name their tools differently, so a wanted call lists all names that a suitable tool may have. */
export interface OfflineCall {
  readonly names: readonly string[];
  readonly input: Fields;
}

type Round = readonly OfflineCall[] | ((results: readonly OfflineResult[]) => readonly OfflineCall[]);

export interface OfflineRule {
  /** Is matched against the user's last message. */
  readonly pattern: RegExp;
  /** Describes the rule in the `help` answer. Null hides the rule. */
  readonly help: string | null;
  /** Returns a text, or at most two rounds of calls. After the last round the answer reports the results. */
  answer(match: RegExpExecArray, view: OfflineView, tools: readonly ToolDefinition[]): string | readonly Round[];
}

const reading = ["read", "read_file"];
const writing = ["write", "write_file"];
const listing = ["list", "list_files", "ls"];
const editing = ["edit", "edit_file"];

/** The first rule that matches answers, so the order of the rules counts. */
export const offlineRules: readonly OfflineRule[] = [
  {
    pattern: /^(?:help|\?|what can you do)\W*$/i,
    help: null,
    answer: () =>
      `I answer by rules and understand:\n${offlineRules.flatMap(({ help }) => (help === null ? [] : [`- ${help}`])).join("\n")}`,
  },
  {
    pattern: /^(?:hello|hi|hey|good (?:morning|day|evening))\W*$/i,
    help: "hello",
    answer: () => 'Hello. I answer by rules; say "help" for what I understand.',
  },
  {
    pattern:
      /^(?:please )?(?:list|ls|show)(?: the| all)*(?: files?)?(?: (?:in|of|under) (?<path>\S*[^\s.?!]))?[.?!]*$/i,
    help: "list files, list files in FOLDER",
    answer: ({ groups }) => [[{ names: listing, input: groups?.["path"] ? { path: groups["path"] } : {} }]],
  },
  {
    pattern:
      /^(?:please )?(?:read|show|cat|open) (?:the )?(?:files? )?(?<paths>\S+(?:(?:(?<=,) (?!and )| and )\S+)*)$/i,
    help: "read PATH, read PATH and PATH (called at once)",
    answer: ({ groups }) => {
      const paths = (groups?.["paths"] ?? "").split(/,? and |, */);
      return [paths.map((path) => ({ names: reading, input: { path } }))];
    },
  },
  {
    pattern: /^(?:please )?write (?<path>\S+?): ?(?<text>[\s\S]+)$/i,
    help: "write PATH: TEXT",
    answer: ({ groups }) => [[{ names: writing, input: { path: groups?.["path"], content: groups?.["text"] } }]],
  },
  {
    pattern: /^(?:please )?copy (?<from>\S+) to (?<path>\S+)$/i,
    help: "copy PATH to PATH (two steps: read, then write)",
    answer: ({ groups }) => [
      [{ names: reading, input: { path: groups?.["from"] } }],
      (results) =>
        results.length > 1
          ? []
          : [{ names: writing, input: { path: groups?.["path"], content: results[0]?.text ?? "" } }],
    ],
  },
  {
    pattern:
      /^(?:please )?(?:edit|change) (?<path>\S+?):? (?:replace )?"(?<oldText>[^"]+)" (?:with|to) "(?<newText>[^"]*)"$/i,
    help: 'edit PATH: "OLD" to "NEW"',
    answer: ({ groups }) => {
      const { path, oldText, newText } = groups ?? {};
      return [[{ names: editing, input: { path, oldText, newText } }]];
    },
  },
  {
    pattern: /^call (?<name>\S+)(?: (?<json>\{[\s\S]*\}))?$/i,
    help: "call TOOL {JSON}",
    answer: ({ groups }) => {
      const input = parseFields(groups?.["json"] ?? "");
      if (input === null) return "What follows the tool's name is no JSON object.";
      return [[{ names: [groups?.["name"] ?? ""], input }]];
    },
  },
  {
    pattern: /^(?:which |what )?tools(?: do you have| are there)?\W*$/i,
    help: "tools",
    answer: (_match, _view, tools) =>
      tools.length === 0 ? "I was given no tools." : `I was given: ${tools.map(({ name }) => name).join(", ")}.`,
  },
  {
    pattern: /^what (?:did i say|have i said)(?: before| so far)?\W*$/i,
    help: "what did I say before",
    answer: (_match, { earlier }) => recall(earlier),
  },
  {
    pattern: /^my name is (?<name>[^.!]+)[.!]?$/i,
    help: "my name is NAME, what is my name",
    answer: ({ groups }) => `Hello, ${groups?.["name"]?.trim()}.`,
  },
  { pattern: /^what(?: is|'s) my name\W*$/i, help: null, answer: (_match, { earlier }) => nameIn(earlier) },
  {
    pattern: /^remember(?: that)? (?<what>[\s\S]+)$/i,
    help: "remember TEXT, what did I ask you to remember",
    answer: () => "Noted: it stays in the conversation.",
  },
  {
    pattern: /^what (?:did i (?:ask|tell) you to|should you) remember\W*$/i,
    help: null,
    answer: (_match, { earlier }) => {
      const found = earlier.flatMap((text) =>
        [...text.matchAll(/^remember(?: that)? (.+)$/gim)].map(([, what]) => what),
      );
      return found.length === 0 ? "Nothing that I am shown." : found.map((what) => `- ${what}`).join("\n");
    },
  },
];

const mostRecalled = 10;

function recall(earlier: readonly string[]): string {
  if (earlier.length === 0) return "Nothing before this that I am shown.";
  const shown = earlier.slice(-mostRecalled).map((text) => `- ${JSON.stringify(text.slice(0, 200))}`);
  const count = `You said ${earlier.length} ${earlier.length === 1 ? "thing" : "things"} before this`;
  return `${count}${earlier.length > mostRecalled ? `; the last ${mostRecalled}` : ""}:\n${shown.join("\n")}`;
}

/** The pattern matches inside a text too, because a summary embeds the sentence among others. */
function nameIn(earlier: readonly string[]): string {
  const names = earlier.flatMap((text) => [...text.matchAll(/\bmy name is ([^\n.!"]+)/gi)].map(([, name]) => name));
  const name = names.at(-1)?.trim();
  return name === undefined ? "You did not say, in what I am shown." : `Your name is ${name}.`;
}
