import type { ChatModel, ChatReply, ChatRequest, Message, StoredRecord, ToolDefinition } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { historyTargets, type TargetName } from "@throughline/history/internal";

const look: ToolDefinition = {
  name: "look",
  description: "Looks at a place.",
  inputSchema: { type: "object", properties: { place: { type: "string" } } },
};

/** A log as a store would keep it, and a model that is asked with what history makes of it. */
export interface Conversation {
  readonly records: readonly StoredRecord[];
  add(message: Message): void;
  /** Asks with everything so far and keeps the reply. */
  ask(how?: Partial<ChatRequest>): Promise<ChatReply>;
  /** What would be sent. */
  messages(): readonly unknown[];
}

export function converse(model: ChatModel, modelId: string): Conversation {
  const records: StoredRecord[] = [];
  const target = historyTargets.get(model.api as TargetName);
  if (target === undefined) throw new Error(`History has no target ${model.api}.`);
  const render = (): { readonly system: string | null; readonly messages: readonly unknown[] } =>
    target.render(buildContext(records), { system: "You look.", target: { provider: model.provider, modelId } });
  const add = (message: Message): void => void records.push(stored(records, message));
  return {
    records,
    add,
    messages: () => render().messages,
    async ask(how = {}) {
      const { system, messages } = render();
      const reply = await model.chat({ modelId, system, messages, tools: [look], ...how });
      add(reply.message);
      return reply;
    },
  };
}

/** As it comes back from a file. */
function stored(records: readonly StoredRecord[], message: Message): StoredRecord {
  const seq = records.length + 1;
  const parentId = records.at(-1)?.id ?? null;
  const fields = { type: "message", id: `r${seq}`, parentId };
  const timestamp = new Date(seq * 1000).toISOString();
  const record = JSON.parse(JSON.stringify({ ...fields, timestamp, message })) as StoredRecord["record"];
  return { ...fields, seq, side: false, tsMs: seq * 1000, storedAtMs: seq * 1000, bytes: 0, crc: null, record };
}
