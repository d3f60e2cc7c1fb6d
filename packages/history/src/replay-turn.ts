/**
 * Holds one turn of a history in which the next turn answers every call. If the rules require it, the roles alternate.
 */
export type ReplayTurn = UserTurn | AssistantTurn | SystemTurn;

/** Holds a message of the user, with the results of the preceding calls. */
export interface UserTurn {
  readonly role: "user";
  /** States the first record of its blocks; null for a generated message, and for results alone. */
  readonly recordId: string | null;
  /** Holds one result for each call of the preceding turn. The results come before the blocks. */
  readonly results: ReplayResult[];
  /** Holds the blocks of the message. */
  readonly blocks: ReplayUserBlock[];
}

/** Holds a reply of a model, which may come from several records. */
export interface AssistantTurn {
  readonly role: "assistant";
  /** States the first record of the reply; null for a generated reply. */
  readonly recordId: string | null;
  /** States the last record of the reply; null for a generated reply. */
  lastRecordId: string | null;
  /** Holds the blocks of the reply in their order. */
  readonly blocks: (ReplayText | ReplayThinking | ReplayCall | ReplayRaw)[];
}

/** Holds instructions in the middle of the conversation. */
interface SystemTurn {
  readonly role: "system";
  /** States the record of the instructions; null for a generated turn. */
  readonly recordId: string | null;
  /** Holds the instructions. */
  readonly text: string;
}

/** Holds a block of a user message or of a tool result. */
export type ReplayUserBlock = ReplayText | ReplayImage | ReplayFile | ReplayRaw;

/** Holds a block of text. */
export interface ReplayText {
  readonly type: "text";
  /** Holds the text, which is never empty. */
  readonly text: string;
  /** Holds the provider's signature; absent unless the rules keep it. */
  readonly signature?: string;
}

/** Holds an image with a `source` in Anthropic's format: base64 with its media type, or a link. */
export interface ReplayImage {
  readonly type: "image";
  /** Holds the bytes or the link of the image. */
  readonly source: ReplaySource;
}

/** Holds a file that the model reads. */
export interface ReplayFile {
  readonly type: "file";
  /** Holds the bytes or the link of the file. */
  readonly source: ReplaySource;
  /** States the name of the file; null if none was stored. */
  readonly name: string | null;
}

/** Holds bytes or a link. */
export type ReplaySource =
  /** Holds the bytes. */
  | {
      readonly type: "base64";
      /** States the media type of the bytes. */
      readonly media_type: string;
      /** Holds the bytes as base64. */
      readonly data: string;
    }
  /** Holds a link that the provider follows. */
  | {
      readonly type: "url";
      /** Holds the http or https address. */
      readonly url: string;
    };

/** Holds a provider-specific block that is sent back unchanged. */
export interface ReplayRaw {
  readonly type: "raw";
  /** Holds the stored block. */
  readonly block: Readonly<Record<string, unknown>>;
}

/** Holds a block of a model's thinking. */
export interface ReplayThinking {
  readonly type: "thinking";
  /** Holds the text of the thinking; empty when the block is redacted. */
  readonly thinking: string;
  /** Holds the provider's signature, or the opaque data of a redacted block; null if none was stored. */
  readonly signature: string | null;
  /** Is true when the provider encrypted the thinking. */
  readonly redacted: boolean;
  /** States the provider's id of the block, which must not occur twice; null if it has none. */
  readonly itemId: string | null;
}

/** Holds a tool call with an id and a name that the provider accepts. */
export interface ReplayCall {
  readonly type: "toolCall";
  /** States the id of the call, to which its result refers. */
  readonly id: string;
  /** Names the tool. */
  readonly name: string;
  /** Holds the arguments of the call. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Holds the provider's signature of the call; null when calls need no signature. */
  readonly signature: string | null;
}

/** Holds the result of a tool call. */
export interface ReplayResult {
  /** States the record of the result; null if the log holds no result and a generated one replaces it. */
  readonly recordId: string | null;
  /** States the id of the call that it answers. */
  readonly callId: string;
  /** Names the tool in the form that the provider receives. */
  readonly name: string;
  /** Holds the blocks that the model reads. */
  readonly content: readonly ReplayUserBlock[];
  /** Is true when the call failed. */
  readonly isError: boolean;
}
