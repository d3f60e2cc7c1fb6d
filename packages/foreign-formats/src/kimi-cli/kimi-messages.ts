import type { Usage } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import { recordsFromMessages } from "@throughline/history/openai";
import { shownText } from "../as-text.ts";
import { attempt, plainMessage } from "../mapped-messages.ts";
import { countOf } from "../token-count.ts";
import type { RecordBody } from "../unit-records.ts";

/** Reads what a person said. Null means that it has no known form. */
export function saidBodies({ user_input: input }: Fields): readonly RecordBody[] | null {
  return input === "" ? [] : bodiesOf({ role: "user", content: input });
}

/** Reads a piece of a reply: text or thinking. Null means another piece. */
export function pieceBody({ type, text, think, encrypted }: Fields): RecordBody | null {
  if (type === "text" && typeof text === "string") return replyBody({ type, text });
  if (type !== "think" || typeof think !== "string") return null;
  const signature = typeof encrypted === "string" && encrypted !== "" ? { thinkingSignature: encrypted } : {};
  return replyBody({ type: "thinking", thinking: think, ...signature });
}

export function callBody({ id, function: called }: Fields): RecordBody | null {
  if (typeof id !== "string" || id === "" || !isFields(called)) return null;
  const { name, arguments: given } = called;
  const call = { id, type: "function", function: { name, arguments: given ?? "" } };
  return bodiesOf({ role: "assistant", content: null, tool_calls: [call] })?.[0] ?? null;
}

/** The model gets the message of a result before its output, in a mark of the program. */
export function resultBody({ tool_call_id: id, return_value: value }: Fields, toolName: string): RecordBody | null {
  if (typeof id !== "string" || id === "" || !isFields(value)) return null;
  const isError = value["is_error"] === true;
  const said = shownText(value["message"]);
  const mark = `<system>${isError ? "ERROR: " : ""}${said}</system>`;
  const { output } = value;
  const parts = Array.isArray(output) ? (output as readonly unknown[]) : [{ type: "text", text: shownText(output) }];
  const given = parts.filter((part) => !isFields(part) || part["type"] !== "text" || part["text"] !== "");
  const content = [...(said === "" && !isError ? [] : [{ type: "text", text: mark }]), ...given];
  const sent = content.length === 0 ? [{ type: "text", text: "<system>Tool output is empty.</system>" }] : content;
  const read = bodiesOf({ role: "tool", tool_call_id: id, content: sent })?.[0];
  if (read === undefined) return null;
  return { ...read, message: { ...(read["message"] as Fields), toolName, isError } };
}

/** The counts of the input exclude cached tokens. */
export function usageOf(counts: unknown): Usage | null {
  if (!isFields(counts)) return null;
  const count = (name: string): number => countOf(counts[name]);
  const [input, output] = [count("input_other"), count("output")];
  const [cacheRead, cacheWrite] = [count("input_cache_read"), count("input_cache_creation")];
  const totalTokens = input + output + cacheRead + cacheWrite;
  return totalTokens === 0 ? null : { input, output, cacheRead, cacheWrite, totalTokens };
}

function replyBody(block: Fields): RecordBody {
  return { type: "message", message: { role: "assistant", content: [block] } };
}

/** The program does not state the provider. */
function bodiesOf(message: Fields): readonly RecordBody[] | null {
  const drafts = attempt(() => recordsFromMessages([message]));
  return (
    drafts?.map((draft) => {
      const { api: _api, provider: _provider, ...fields } = plainMessage(draft.message);
      return { type: "message", message: fields };
    }) ?? null
  );
}
