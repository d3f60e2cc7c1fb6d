/** A history in which every call is answered in the turn after it. Where the rules ask for it, the roles alternate. */
export type ReplayTurn = UserTurn | AssistantTurn | SystemTurn;

export interface UserTurn {
  readonly role: "user";
  /** The record that its blocks came from, the first of several; null for what was made up, and for results alone. */
  readonly recordId: string | null;
  /** One for each call of the turn before; they come before the blocks. */
  readonly results: ReplayResult[];
  readonly blocks: ReplayUserBlock[];
}

export interface AssistantTurn {
  readonly role: "assistant";
  /** The first and the last record that it came from; null for what was made up. */
  readonly recordId: string | null;
  lastRecordId: string | null;
  readonly blocks: (ReplayText | ReplayThinking | ReplayCall | ReplayRaw)[];
}

/** Instructions that were given in the middle of the conversation. */
interface SystemTurn {
  readonly role: "system";
  readonly recordId: string | null;
  readonly text: string;
}

export type ReplayUserBlock = ReplayText | ReplayImage | ReplayFile | ReplayRaw;

export interface ReplayText {
  readonly type: "text";
  readonly text: string;
  /** What the provider signed it with; only where the rules keep it. */
  readonly signature?: string;
}

/** `source` as Anthropic writes it: base64 with its media type, or a link. */
export interface ReplayImage {
  readonly type: "image";
  readonly source: ReplaySource;
}

export interface ReplayFile {
  readonly type: "file";
  readonly source: ReplaySource;
  readonly name: string | null;
}

export type ReplaySource =
  | { readonly type: "base64"; readonly media_type: string; readonly data: string }
  | { readonly type: "url"; readonly url: string };

/** A block of the provider's own that goes back as it came. */
export interface ReplayRaw {
  readonly type: "raw";
  readonly block: Readonly<Record<string, unknown>>;
}

export interface ReplayThinking {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string | null;
  readonly redacted: boolean;
  /** The provider's id of it, which must not occur twice; null when it has none. */
  readonly itemId: string | null;
}

export interface ReplayCall {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly signature: string | null;
}

export interface ReplayResult {
  /** Null where the log holds no result and one was made up. */
  readonly recordId: string | null;
  readonly callId: string;
  /** The name the call goes by. */
  readonly name: string;
  readonly content: readonly ReplayUserBlock[];
  readonly isError: boolean;
}
