/** A history that alternates strictly between user and assistant and answers every call in the turn after it. */
export type ReplayTurn = UserTurn | AssistantTurn;

export interface UserTurn {
  readonly role: "user";
  /** One for each call of the turn before; they come before the blocks. */
  readonly results: ReplayResult[];
  readonly blocks: (ReplayText | ReplayImage)[];
}

export interface AssistantTurn {
  readonly role: "assistant";
  readonly blocks: (ReplayText | ReplayThinking | ReplayCall)[];
}

export interface ReplayText {
  readonly type: "text";
  readonly text: string;
}

export interface ReplayImage {
  readonly type: "image";
  readonly source: Readonly<Record<string, unknown>>;
}

export interface ReplayThinking {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
  readonly redacted: boolean;
}

export interface ReplayCall {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface ReplayResult {
  readonly callId: string;
  readonly content: readonly (ReplayText | ReplayImage)[];
  readonly isError: boolean;
}
