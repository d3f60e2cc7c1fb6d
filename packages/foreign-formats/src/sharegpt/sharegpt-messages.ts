import { isFields, type Fields } from "@throughline/core/internal";
import { recordsFromMessages } from "@throughline/history/openai";
import type { UnitPlace } from "../foreign-format.ts";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout } from "../unit-records.ts";

/** The data sets of different authors use these names for the author of a message. */
export const speakers: ReadonlyMap<unknown, "user" | "assistant" | "system" | "call" | "result"> = new Map([
  ["human", "user"],
  ["user", "user"],
  ["gpt", "assistant"],
  ["assistant", "assistant"],
  ["chatgpt", "assistant"],
  ["bing", "assistant"],
  ["bard", "assistant"],
  ["system", "system"],
  ["function_call", "call"],
  ["observation", "result"],
  ["tool", "result"],
  ["function_response", "result"],
]);

const knownFields: ReadonlySet<string> = new Set(["from", "value"]);

/** Calls have no ids in a data set, so results answer the earlier calls in order. */
export class ShareGptMessages implements MessageList {
  readonly name = "sharegpt";
  sessionId: string | null = null;
  readonly entry = {};
  /** The list holds the ids that were created for unanswered calls, because a result states none. */
  #openCalls: string[] = [];

  frame({ id }: Fields): ReadFrame {
    if (typeof id === "string" && id !== "") this.sessionId ??= id;
    return { bodies: [] };
  }

  element(value: Fields, place: UnitPlace): ReadElement {
    const messages = this.#messages(value, place.line);
    const drafts = messages === null ? null : attempt(() => recordsFromMessages(messages));
    if (drafts === null) return { bodies: [], isUnreadable: value["from"] !== undefined };
    const native = fieldsWithout(value, knownFields);
    const more = Object.keys(native).length === 0 ? {} : { native };
    const bodies = drafts.map((draft) => {
      // A data set does not state which model wrote the replies.
      const { api: _api, provider: _provider, ...message } = plainMessage(draft.message);
      return { type: "message", ...more, message };
    });
    return { bodies, isUnreadable: false };
  }

  #messages({ from, value }: Fields, line: number): readonly Fields[] | null {
    const speaker = speakers.get(from);
    if (speaker === undefined || typeof value !== "string") return null;
    if (speaker === "call") {
      const calls = callsIn(value);
      // A text that is no call is the model's answer.
      if (calls === null) return [{ role: "assistant", content: value }];
      const made = calls.map((call, index) => ({ id: `call_${line}_${index + 1}`, type: "function", function: call }));
      this.#openCalls.push(...made.map(({ id }) => id));
      return [{ role: "assistant", content: null, tool_calls: made }];
    }
    if (speaker === "result") {
      const id = this.#openCalls.shift() ?? `call_${line}`;
      return [{ role: "tool", tool_call_id: id, content: value }];
    }
    if (speaker === "user") this.#openCalls = [];
    return [{ role: speaker, content: value }];
  }
}

/** The text must consist of calls only; otherwise the result is null. */
function callsIn(text: string): readonly Fields[] | null {
  const value = parsed(text);
  const listed: readonly unknown[] = Array.isArray(value) ? (value as readonly unknown[]) : [value];
  const calls = listed.flatMap((call) => {
    if (!isFields(call) || typeof call["name"] !== "string") return [];
    const { name, arguments: given = {} } = call;
    return [{ name, arguments: typeof given === "string" ? given : JSON.stringify(given) }];
  });
  return calls.length > 0 && calls.length === listed.length ? calls : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
