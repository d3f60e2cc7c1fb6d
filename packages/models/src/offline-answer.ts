import type { ToolDefinition } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { offlineRules, type OfflineCall } from "./offline-rules.ts";
import type { OfflineResult, OfflineView } from "./offline-view.ts";

export interface OfflineAnswer {
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: Fields }[];
}

/** Every text begins with this label, so that no reader mistakes the rules for a language model. */
const label = "[offline rules, not a language model]";

const mostResultCharacters = 2000;

export function answerOffline(view: OfflineView, tools: readonly ToolDefinition[]): OfflineAnswer {
  const instead = notForRules(view);
  if (instead !== null) return { text: instead, calls: [] };
  const failed = view.results.filter(({ isError }) => isError);
  for (const rule of offlineRules) {
    const match = rule.pattern.exec(view.asked);
    if (match === null) continue;
    const step = rule.answer(match, view, tools);
    if (typeof step === "string") return say(step);
    const next = failed.length > 0 ? undefined : step[view.results.length === 0 ? 0 : 1];
    const wanted = typeof next === "function" ? next(view.results) : (next ?? []);
    return wanted.length === 0 ? say(report(view.results)) : call(wanted, view, tools);
  }
  if (view.results.length > 0) return say(report(view.results));
  return say(`I do not understand ${JSON.stringify(shorten(view.asked, 80))}. Say "help" for what I understand.`);
}

/**
 * Answers requests that programs make without the user. The rules cannot write a summary, so the answer is a refusal
 * that an audit detects. A request to save memories gets the answer that there are none.
 */
function notForRules({ asked, isFlush }: OfflineView): string | null {
  if (/^summari[sz]e the conversation|<conversation>/i.test(asked)) return `I cannot summarize that. ${label}`;
  return isFlush ? `NO_REPLY ${label}` : null;
}

function say(text: string): OfflineAnswer {
  return { text: `${label} ${text}`, calls: [] };
}

/** Maps the wanted calls to the names and argument names of the available tools. */
function call(wanted: readonly OfflineCall[], view: OfflineView, tools: readonly ToolDefinition[]): OfflineAnswer {
  const calls: OfflineAnswer["calls"][number][] = [];
  for (const { names, input } of wanted) {
    const tool = tools.find(({ name }) => names.includes(name));
    if (tool === undefined) return say(`That needs a tool called ${names.join(" or ")}, and I was given none.`);
    const id = `offline_${view.messageCount}_${calls.length + 1}`;
    calls.push({ id, name: tool.name, input: fitted(input, tool) });
  }
  const told = calls.map(({ name, input }) => `${name} ${JSON.stringify(input)}`).join(", ");
  return { text: `${label} I call ${shorten(told, 200)}.`, calls };
}

const otherNames: Readonly<Record<string, readonly string[]>> = {
  path: ["path", "file_path", "filePath", "file", "filename", "directory", "dir"],
  content: ["content", "text", "contents", "data"],
  oldText: ["oldText", "old_text", "old_string", "oldString"],
  newText: ["newText", "new_text", "new_string", "newString"],
};

/** Tools use different names for the same arguments, so the input takes the names of the tool's schema. */
function fitted(input: Fields, { inputSchema }: ToolDefinition): Fields {
  const properties = inputSchema["properties"];
  const known = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const entries = Object.entries(input).map(([name, value]) => {
    const own = otherNames[name]?.find((other) => known.includes(other));
    return [own ?? name, value] as const;
  });
  return Object.fromEntries(entries);
}

function report(results: readonly OfflineResult[]): string {
  const told = results.map(({ tool, isError, text }) => {
    const shown = text.trim() === "" ? "(nothing)" : shorten(text, mostResultCharacters);
    return `${tool} ${isError ? "failed" : "answered"}:\n${shown}`;
  });
  return told.join("\n\n");
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}… (${text.length - most} characters more)`;
}
