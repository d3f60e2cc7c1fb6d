/** Other words for a setting, by the programs whose configuration is taken as it stands. */
export const settingAliases: Readonly<Record<string, string>> = {
  "session.preset": "preset",
  "session.storage": "session.store",
  "session.path": "session.storePath",
  // A boolean; the object of that name is the setting's own block.
  "session.inherit": "session.inherit.enabled",
  "session.inheritPath": "session.inherit.source",
  "session.inheritFrom": "session.inherit.readKey",
  "session.idleMinutes": "session.reset.idleMinutes",
  "session.checkpoint.tokenThresholds": "session.checkpoint.tokenThresholdPercents",
  "session.checkpoint.thresholds": "session.checkpoint.tokenThresholdPercents",
};

/** The settings that an alias implies, where the file does not set them: OpenClaw's `session.idleMinutes` has no mode. */
export const impliedByAlias: Readonly<Record<string, { readonly key: string; readonly value: string }>> = {
  "session.idleMinutes": { key: "session.reset.mode", value: "idle" },
};
