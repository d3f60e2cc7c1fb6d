/** States the facts about replies that messages do not contain. */
export interface RecordsFromMessagesOptions {
  /**
   * Names the model that wrote the replies. Signed thinking is sent back only to this model. @default none, and no
   * thinking goes back
   */
  readonly model?: string | undefined;
  /** Names the provider of the model, as in records. @default the provider of the entry */
  readonly provider?: string | undefined;
}

/** States the facts that a reply may not contain. */
export interface RecordFromReplyOptions {
  /** Names the model that was requested. @default the one that the reply names */
  readonly model?: string | undefined;
  /** Names the provider of the model, as in records. @default the provider of the entry */
  readonly provider?: string | undefined;
  /** Creates the ids of calls to which the provider assigned none. @default random ones */
  readonly nextCallId?: (() => string) | undefined;
}
