import { providerMappings } from "@throughline/history/internal";
import type { FormatWriter } from "../format-writer.ts";
import { sentMessages } from "../message-texts.ts";

const chat = providerMappings.openai({});

/** Writes what a model would be sent now, as the messages of a request. */
export const openAiWriter: FormatWriter = {
  writesHistory: false,
  *write(session, options) {
    for (const message of sentMessages(session, chat, options)) yield JSON.stringify(message);
  },
  frame: () => ({ head: '{"messages":[', tail: "\n]}\n" }),
  sessionId: ({ sessionId }) => sessionId,
  path: ({ sessionId }) => [`${sessionId}.json`],
  resume: null,
};
