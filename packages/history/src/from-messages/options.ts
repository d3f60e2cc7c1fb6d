/** What messages do not say of the replies among them. */
export interface RecordsFromMessagesOptions {
  /** The model that wrote the replies: signed thinking goes back to no other. @default none, and no thinking goes back */
  readonly model?: string;
  /** Who offers the model, as records name it. @default the provider of the entry */
  readonly provider?: string;
}

/** What a reply may not say of itself. */
export interface RecordFromReplyOptions {
  /** The model that was asked for. @default the one that the reply names */
  readonly model?: string;
  /** Who offers the model, as records name it. @default the provider of the entry */
  readonly provider?: string;
  /** Makes the ids of calls that the provider gave none. @default random ones */
  readonly nextCallId?: () => string;
}
