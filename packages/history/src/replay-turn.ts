/** A history in which every call is answered in the turn after it. Where the rules ask for it, the roles alternate. */
export type ReplayTurn = UserTurn | AssistantTurn | SystemTurn;

/** What the user said, with the results of the calls before it. */
export interface UserTurn {
  readonly role: "user";
  /** The record that its blocks came from, the first of several; null for what was made up, and for results alone. */
  readonly recordId: string | null;
  /** One for each call of the turn before; they come before the blocks. */
  readonly results: ReplayResult[];
  /** The blocks of the message. */
  readonly blocks: ReplayUserBlock[];
}

/** A reply of a model, perhaps of several records. */
export interface AssistantTurn {
  readonly role: "assistant";
  /** The first and the last record that it came from; null for what was made up. */
  readonly recordId: string | null;
  /** The last record that it came from; null for what was made up. */
  lastRecordId: string | null;
  /** The blocks of the reply, in its order. */
  readonly blocks: (ReplayText | ReplayThinking | ReplayCall | ReplayRaw)[];
}

/** Instructions that were given in the middle of the conversation. */
interface SystemTurn {
  readonly role: "system";
  /** The record that it came from; null for what was made up. */
  readonly recordId: string | null;
  /** The instructions. */
  readonly text: string;
}

/** A block of a user message or of a tool result. */
export type ReplayUserBlock = ReplayText | ReplayImage | ReplayFile | ReplayRaw;

/** A block of text. */
export interface ReplayText {
  readonly type: "text";
  /** The text, never empty. */
  readonly text: string;
  /** What the provider signed it with; only where the rules keep it. */
  readonly signature?: string;
}

/** `source` as Anthropic writes it: base64 with its media type, or a link. */
export interface ReplayImage {
  readonly type: "image";
  /** Where the image is. */
  readonly source: ReplaySource;
}

/** A file that the model reads. */
export interface ReplayFile {
  readonly type: "file";
  /** Where the file is. */
  readonly source: ReplaySource;
  /** The file's name; null when its writer stored none. */
  readonly name: string | null;
}

/** Bytes, or a link. */
export type ReplaySource =
  /** The bytes. */
  | {
      readonly type: "base64";
      /** The media type of the bytes. */
      readonly media_type: string;
      /** The bytes as base64. */
      readonly data: string;
    }
  /** A link that the provider follows. */
  | {
      readonly type: "url";
      /** The address, http or https. */
      readonly url: string;
    };

/** A block of the provider's own that goes back as it came. */
export interface ReplayRaw {
  readonly type: "raw";
  /** The block as it was stored. */
  readonly block: Readonly<Record<string, unknown>>;
}

/** A block of a model's thinking. */
export interface ReplayThinking {
  readonly type: "thinking";
  /** The text of the thinking; empty where it is redacted. */
  readonly thinking: string;
  /** The provider's signature, or the opaque data of a redacted block; null when nothing was stored. */
  readonly signature: string | null;
  /** True when the provider encrypted it. */
  readonly redacted: boolean;
  /** The provider's id of it, which must not occur twice; null when it has none. */
  readonly itemId: string | null;
}

/** A tool call, with an id and a name that the provider takes. */
export interface ReplayCall {
  readonly type: "toolCall";
  /** The id of the call; its result names the same. */
  readonly id: string;
  /** The name of the tool. */
  readonly name: string;
  /** The arguments of the call. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** What the provider signed the call with; null when calls go unsigned. */
  readonly signature: string | null;
}

/** The result of a tool call. */
export interface ReplayResult {
  /** Null where the log holds no result and one was made up. */
  readonly recordId: string | null;
  /** The id of the call that it answers. */
  readonly callId: string;
  /** The name the call goes by. */
  readonly name: string;
  /** What the model reads. */
  readonly content: readonly ReplayUserBlock[];
  /** True when the call failed. */
  readonly isError: boolean;
}
