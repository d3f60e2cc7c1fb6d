/**
 * Other programs use these names for a setting. They are accepted, so that those programs' configurations work
 * unchanged.
 */
export const settingAliases: Readonly<Record<string, string>> = {
  "session.preset": "preset",
  "session.storage": "session.store",
  "session.path": "session.storePath",
  // The alias applies to a boolean; an object of that name is the setting's own block.
  "session.inherit": "session.inherit.enabled",
  "session.inheritPath": "session.inherit.source",
  "session.inheritFrom": "session.inherit.readKey",
  "session.idleMinutes": "session.reset.idleMinutes",
  "session.checkpoint.tokenThresholds": "session.checkpoint.tokenThresholdPercents",
  "session.checkpoint.thresholds": "session.checkpoint.tokenThresholdPercents",
};

/**
 * An alias implies these settings when the file does not set them, because OpenClaw's `session.idleMinutes` has no
 * mode.
 */
export const impliedByAlias: Readonly<Record<string, { readonly key: string; readonly value: string }>> = {
  "session.idleMinutes": { key: "session.reset.mode", value: "idle" },
};
