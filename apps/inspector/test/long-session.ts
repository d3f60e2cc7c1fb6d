import process from "node:process";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";

const words = "the tide turned at noon and every boat in the harbor swung round to face the sea ".split(" ");

function prose(seed: number, length: number): string {
  return Array.from({ length }, (_, at) => words[(seed * 7 + at * 3) % words.length]).join(" ");
}

/** Makes records of a conversation: a prompt, then calls with results and prose, and a compaction each 4,000 records. */
function draft(at: number): Readonly<Record<string, unknown>> {
  const timestamp = new Date(Date.UTC(2026, 0, 5) + at * 4000 + Math.floor(at / 700) * 7_200_000).toISOString();
  const turn = Math.floor(at / 2);
  const place = at % 20;
  if (at % 4000 === 3999)
    return {
      type: "compaction",
      summary: `Summary of ${at} records. ${prose(at, 120)}`,
      tokensBefore: 180_000,
      tokensAfter: 41_000,
      timestamp,
    };
  if (place === 0)
    return {
      type: "message",
      timestamp,
      message: { role: "user", content: `Prompt ${at / 20 + 1}: ${prose(at, 18)}` },
    };
  const callId = `call-${turn}`;
  if (place % 2 === 1)
    return {
      type: "message",
      timestamp,
      message: {
        role: "assistant",
        model: "model-large-5",
        content:
          place === 19
            ? [
                {
                  type: "text",
                  text: `Done with part ${at}.\n\n- ${prose(at, 12)}\n- ${prose(at + 1, 9)}\n\n\`\`\`ts\nconst part = ${at};\n\`\`\``,
                },
              ]
            : [
                { type: "text", text: prose(at, 24) },
                {
                  type: "toolCall",
                  id: callId,
                  name: place % 3 === 0 ? "bash" : "read",
                  arguments: { path: `src/part-${at}.ts` },
                },
              ],
      },
    };
  return {
    type: "message",
    timestamp,
    message: {
      role: "toolResult",
      toolCallId: `call-${Math.floor((at - 1) / 2)}`,
      toolName: place % 3 === 0 ? "bash" : "read",
      isError: at % 97 === 0,
      content: [{ type: "text", text: `${prose(at, 40)}\n`.repeat(1 + (at % 9)) }],
    },
  };
}

const batch = 1000;

/** Writes a session of `count` records, for measurements of the page. */
export async function writeLongSession(store: SessionStore, key: string, count: number): Promise<void> {
  const ref = { namespace: "", agentId: "main", key };
  const title = `A session of ${count} records`;
  await store.save(ref, { sessionId: `long-${count}`, title, cwd: "/home/user/harbor" } as never, { ifRevision: null });
  for (let at = 0; at < count; at += batch) {
    const drafts = Array.from({ length: Math.min(batch, count - at) }, (_, index) => draft(at + index));
    await store.append(ref, drafts as never);
  }
}

if (import.meta.main) {
  const [path = "", key = "", count = "0"] = process.argv.slice(2);
  const store = await createSqliteStore({ path });
  await writeLongSession(store, key, Number(count));
  await store.close();
}
