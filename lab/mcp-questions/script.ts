import type { ReceivedRequest, SimulatedReply } from "../../packages/testing/src/index.ts";
import { isFields, parsedFields } from "../../packages/core/src/json-object.ts";
import { factsOf } from "../gateway-agents/request-facts.ts";
import type { AskingProgram } from "./programs.ts";
import { type AskedQuestion, plain } from "./sessions.ts";

/** What the tools of the server gave the model of a program. */
export interface ToolResults {
  /** The place of the search that holds the evidence, from 1; 0 when none does. */
  readonly place: number;
  /** Whether the session that was read next has the evidence. */
  readonly isRead: boolean;
  readonly texts: readonly string[];
}

/** A program that waits for our server in vain is a failure. */
const mostResults = 12;

/** Searches with the question, then reads around the first place, then answers. */
export function replyFor(program: AskingProgram, question: AskedQuestion, request: ReceivedRequest): SimulatedReply {
  if (factsOf(request).asker === "title") return "A title";
  const texts = resultTexts(request);
  const found = texts.findIndex((text) => placesIn(text).length > 0);
  if (texts.length >= mostResults || (found >= 0 && found < texts.length - 1)) return "That is what was said.";
  const [best] = placesIn(texts[found] ?? "");
  const call =
    best !== undefined
      ? program.call("read_session", { key: best.key, around: best.seq })
      : (program.waits(texts.at(-1) ?? "") ?? program.call("search_sessions", { query: question.text }));
  return { kind: "answer", content: [call] };
}

/** Reads the results from the request that holds most of them. */
export function resultsFor({ evidence }: AskedQuestion, requests: readonly ReceivedRequest[]): ToolResults {
  const [texts = []] = requests.map(resultTexts).toSorted((one, other) => other.length - one.length);
  const found = texts.findIndex((text) => placesIn(text).length > 0);
  const places = placesIn(texts[found] ?? "");
  const at = places.findIndex(({ snippet }) => evidence.some((text) => shares(text, snippet)));
  // A session is read with a bar before each line.
  const read = plain((texts[found + 1] ?? "").replaceAll("  | ", " "));
  return { place: at + 1, isRead: found >= 0 && evidence.some((text) => read.includes(text.slice(0, 40))), texts };
}

/** A snippet has parts of a record, with an ellipsis between them. */
function shares(text: string, snippet: string): boolean {
  return snippet.split("…").some((part) => plain(part).length >= 20 && text.includes(plain(part)));
}

interface ShownPlace {
  readonly key: string;
  readonly seq: number;
  readonly snippet: string;
}

/** Claude Code gives the model the structured result, and Codex's script takes the text. */
function placesIn(searched: string): readonly ShownPlace[] {
  const { hits } = (parsedFields(searched) ?? {}) as { readonly hits?: readonly ShownPlace[] };
  if (hits !== undefined) return hits;
  const lines = searched.matchAll(/^"(agent:[^"\n]+)" #(\d+) [^\n]*\n {2}\| ([^\n]*)$/gm);
  return [...lines].map(([, key = "", seq, snippet = ""]) => ({ key, seq: Number(seq), snippet }));
}

/** The texts of all tool results of a request, in their order. */
function resultTexts({ body }: Pick<ReceivedRequest, "body">): readonly string[] {
  const fields = isFields(body) ? body : {};
  const items = (fields["messages"] ?? fields["input"]) as unknown;
  return Array.isArray(items) ? items.flatMap(resultsOf) : [];
}

function resultsOf(item: unknown): readonly string[] {
  if (!isFields(item)) return [];
  if (String(item["type"]).endsWith("_call_output")) return [textIn(item["output"])];
  if (!Array.isArray(item["content"])) return [];
  return item["content"].flatMap((part: unknown) =>
    isFields(part) && part["type"] === "tool_result" ? [textIn(part["content"])] : [],
  );
}

function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  return Object.values(value).map(textIn).join("\n");
}
