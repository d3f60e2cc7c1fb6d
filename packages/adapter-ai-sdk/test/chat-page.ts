import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";

/** The state that `useChat` keeps of a chat. */
export function chatState(messages: UIMessage[]): ChatState<UIMessage> {
  const state: ChatState<UIMessage> = {
    status: "ready",
    error: undefined,
    messages,
    pushMessage: (message) => void (state.messages = [...state.messages, message]),
    popMessage: () => void (state.messages = state.messages.slice(0, -1)),
    replaceMessage: (index, message) => void (state.messages = state.messages.with(index, message)),
    snapshot: (value) => structuredClone(value),
  };
  return state;
}

/** The page of `useChat`, with the SDK's transport to these routes. */
export class ChatPage extends AbstractChat<UIMessage> {
  constructor(messages: UIMessage[], fetch: typeof globalThis.fetch) {
    const init: ChatInit<UIMessage> & { readonly state: ChatState<UIMessage> } = {
      id: "c",
      state: chatState(messages),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      transport: new DefaultChatTransport({
        api: "http://127.0.0.1/api/chat",
        fetch,
        prepareSendMessagesRequest: ({ id, messages: all }) => ({ body: { id, message: all[all.length - 1] } }),
      }),
    };
    super(init);
  }
}
