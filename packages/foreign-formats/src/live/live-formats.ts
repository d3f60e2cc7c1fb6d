import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, sourceFormatOf, type Fields } from "@throughline/core/internal";
import { AdkEvents } from "../adk/adk-events.ts";
import { adkRules, createAdkEvents } from "../adk/write-adk-events.ts";
import { answeredCalls } from "../ai-sdk/answered-calls.ts";
import { PromptMessages } from "../ai-sdk/prompt-messages.ts";
import { UiMessages } from "../ai-sdk/ui-messages.ts";
import { createPromptTurns } from "../ai-sdk/write-prompt-messages.ts";
import { type MessageNames, UiMessageList, uiMessageRules } from "../ai-sdk/write-ui-messages.ts";
import { createLangchainTurns, LangchainMessages, langchainRules } from "../langgraph/live-messages.ts";
import { AgentItems } from "../openai-agents/agent-items.ts";
import { agentItemRules, createAgentItemTurns } from "../openai-agents/write-agent-items.ts";
import { liveDrafts } from "./live-drafts.ts";
import type { LiveFormat, LiveMapping } from "./live-format.ts";
import { liveItems } from "./live-items.ts";

function liveFormat(mapping: LiveMapping): LiveFormat {
  const { name, createList } = mapping;
  return {
    name,
    drafts: (items, place) => liveDrafts(name, createList(), items, place),
    items: (session, options = {}) => liveItems(mapping, session, options),
  };
}

/** Converts items of a session of OpenAI's Agents SDK. */
export const openAiAgentsItems: LiveFormat = liveFormat({
  name: "openai-agents",
  createList: () => new AgentItems(),
  rules: agentItemRules,
  createWriter: () => createAgentItemTurns(),
  holdsResults: false,
});

/** Converts messages of LangChain in the form of LangGraph's checkpoint serializer. */
export const langchainMessages: LiveFormat = liveFormat({
  name: "langgraph",
  createList: () => new LangchainMessages(),
  rules: langchainRules,
  createWriter: () => createLangchainTurns(),
  holdsResults: false,
});

/** A rendered message keeps the id and the metadata that the program once gave it. */
function namesOfMessages(records: readonly SourcedRecord[]): MessageNames {
  const byId = new Map(records.map((stored) => [stored.id, stored]));
  return (recordId) => {
    const stored = byId.get(recordId);
    const isOwn = stored !== undefined && sourceFormatOf(stored.record) === "ai-sdk" && !stored.isSourceCanonical;
    if (!isOwn || typeof stored.source !== "string") return null;
    const { id, metadata } = JSON.parse(stored.source) as Fields;
    return { ...(typeof id === "string" ? { id } : {}), ...(isFields(metadata) ? { metadata } : {}) };
  };
}

/** Converts messages that the AI SDK keeps for a user interface. */
export const aiSdkMessages: LiveFormat = liveFormat({
  name: "ai-sdk",
  createList: () => new UiMessages(),
  rules: uiMessageRules,
  createWriter: ({ sessionId, records }, conversation, losses) =>
    new UiMessageList(sessionId, conversation, losses, namesOfMessages(records)),
  holdsResults: true,
  answerOpenCalls: answeredCalls,
});

/** Returns the format of the messages that the AI SDK passes to a model, for provider specification 3 or 4. */
export function aiSdkPrompt(version: 3 | 4): LiveFormat {
  return liveFormat({
    name: "ai-sdk.prompt",
    createList: () => new PromptMessages(),
    rules: uiMessageRules,
    createWriter: () => createPromptTurns(version),
    holdsResults: false,
  });
}

/**
 * Returns the format of the events of Google's ADK. `agentName` becomes the author of replies that another program
 * wrote.
 */
export function adkEvents(agentName: string): LiveFormat {
  return liveFormat({
    name: "adk",
    createList: () => new AdkEvents(),
    rules: adkRules,
    createWriter: (session, conversation) => createAdkEvents(session, conversation, agentName),
    holdsResults: false,
  });
}
