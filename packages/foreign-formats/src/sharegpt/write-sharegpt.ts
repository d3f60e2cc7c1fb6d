import type { Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import {
  providerMappings,
  type ProviderMapping,
  type ReplayResult,
  type ReplayTurn,
} from "@throughline/history/internal";
import { documentWriter } from "../document-writer.ts";
import type { FormatWriter } from "../format-writer.ts";
import { sentMessages } from "../message-texts.ts";

const chat = providerMappings.openai({});

/** A result does not name its call, so the results of a reply are written in the order of its calls. */
function createMapping(): ProviderMapping<Fields> {
  let callIds: readonly string[] = [];
  return {
    rules: { ...chat.rules, imageTypes: new Set(), fileTypes: new Set(), imageLinks: false, carryThinking: () => null },
    turn: (turn) => {
      if (turn.role === "assistant")
        callIds = turn.blocks.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
      if (turn.role !== "user") return turnsOf(turn);
      const placeOf = ({ callId }: ReplayResult): number => callIds.indexOf(callId);
      const results = turn.results.toSorted((one, other) => placeOf(one) - placeOf(other));
      return turnsOf({ ...turn, results });
    },
    system: () => ({ field: null, first: [] }),
  };
}

/** The writer renders the messages that a model would get now, as a data set of one conversation. */
export const shareGptWriter: FormatWriter = documentWriter(
  { head: '[{"conversations":[', tail: "\n]}]\n" },
  (session, options) => sentMessages(session, createMapping(), options, false),
);

function turnsOf(turn: ReplayTurn): readonly Fields[] {
  if (turn.role === "system") return [{ from: "system", value: turn.text }];
  if (turn.role === "user") {
    const results = turn.results.map(({ content }) => ({ from: "observation", value: textOf(content) }));
    return turn.blocks.length === 0 ? results : [...results, { from: "human", value: textOf(turn.blocks) }];
  }
  const text = textOf(turn.blocks);
  const calls = turn.blocks.flatMap((block) =>
    block.type === "toolCall"
      ? [{ from: "function_call", value: JSON.stringify({ name: block.name, arguments: block.arguments }) }]
      : [],
  );
  return text === "" && calls.length > 0 ? calls : [{ from: "gpt", value: text }, ...calls];
}

function textOf(blocks: readonly { readonly type: string }[]): string {
  const texts = blocks.flatMap((block) => (block.type === "text" && "text" in block ? [asText(block.text)] : []));
  return texts.join("\n\n");
}
