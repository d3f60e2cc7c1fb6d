import type { SettingValue } from "@throughline/core/internal";

/**
 * Holds the values of the documents that this project started with, by name. A preset sets how sessions are kept small
 * and which models summarize them. It does not set where sessions are kept, because a name must not move a user's
 * sessions to another file.
 */
export const presets: Readonly<Record<string, Readonly<Record<string, SettingValue>>>> = {
  // The claw0 lesson has a limit of 180,000 tokens, and acts only when a request does not fit. Then tool results over
  // 30 % of the limit keep their beginning. After that one summary replaces the older half, and at least four messages
  // stay.
  claw0: {
    windowTokens: 180_000,
    maxOutputTokens: 8096,
    "session.guard.keep": "head",
    "session.guard.resultPercent": 30,
    "session.compaction.inAdvance": false,
    "session.compaction.keepPercent": 50,
    "session.compaction.emergencyKeepPercent": 50,
    "session.compaction.minMessages": 4,
    "session.compaction.keepRecentTokens": 0,
    "session.compaction.mostKeptPercent": 90,
    "session.compaction.summaryStyle": "concise",
    "session.compaction.summaryToolResults": "keep",
    "session.compaction.maxSummaryTokens": 2048,
    "session.compaction.toolResultChars": 500,
    "session.compaction.preferCheckpoint": false,
    "session.compaction.retryIntervalSeconds": 0,
    "session.checkpoint.enabled": false,
    "session.memoryFlush.enabled": false,
  },
  // The page on session management asks Ollama, then Anthropic. The page names no Anthropic model, so the preset
  // chooses one.
  "goclaw-doc": {
    "session.compaction.reserveTokens": 30_000,
    "session.compaction.background": false,
    "session.compaction.keepPercent": 10,
    "session.compaction.emergencyKeepPercent": 20,
    "session.compaction.preferCheckpoint": true,
    "session.compaction.retryIntervalSeconds": 60,
    "session.compaction.summaryModels": ["ollama", "anthropic/claude-haiku-4-5"],
    "session.compaction.fallbackToMain": false,
    "session.compaction.ollamaFailureThreshold": 3,
    "session.compaction.ollamaResetMinutes": 30,
    "session.compaction.ollama.url": "http://localhost:11434",
    "session.compaction.ollama.model": "qwen2.5:7b",
    "session.compaction.ollama.timeoutSeconds": 600,
    "session.compaction.ollama.contextTokens": 131_072,
    "session.checkpoint.enabled": true,
    "session.checkpoint.model": "ollama",
    "session.checkpoint.fallbackToMain": true,
    "session.checkpoint.tokenThresholdPercents": [25, 50, 75],
    "session.checkpoint.turnThreshold": 10,
    "session.checkpoint.minTokensForGen": 5000,
  },
  // These values come from the specification of session persistence.
  "goclaw-spec": {
    "session.inherit.readKey": "agent:main:main",
    "session.inherit.writeKey": "goclaw:main:main",
    "session.defaultKey": "agent:main:main",
    "session.compaction.reserveTokens": 4000,
    // The document's number must hold as printed, so the floor is lowered to it.
    "session.compaction.reserveFloorTokens": 4000,
    "session.compaction.background": false,
    "session.compaction.preferCheckpoint": true,
    "session.checkpoint.enabled": true,
    "session.checkpoint.model": "anthropic/claude-3-haiku",
    "session.checkpoint.fallbackToMain": true,
    "session.checkpoint.tokenThresholdPercents": [25, 50, 75],
    "session.checkpoint.turnThreshold": 15,
    "session.checkpoint.minTokensForGen": 10_000,
    "session.memoryFlush.enabled": true,
    "session.memoryFlush.showInSystemPrompt": true,
    "session.memoryFlush.thresholds": [
      { percent: 50, prompt: "Context at 50%. Consider noting key decisions to memory.", injectAs: "system" },
      {
        percent: 75,
        prompt: "Context at 75%. Write important context to memory/YYYY-MM-DD.md now.",
        injectAs: "system",
      },
      {
        percent: 90,
        prompt: [
          "[SYSTEM: pre-compaction memory flush]",
          "Context at 90%. Compaction imminent.",
          "Store durable memories now (use memory/YYYY-MM-DD.md).",
          "If nothing to store, reply with NO_REPLY.",
        ].join("\n"),
        injectAs: "user",
      },
    ],
  },
  // OpenClaw has a fixed reserve, keeps recent tokens and does not count messages. It flushes once, 4,000 tokens before
  // the compaction (176,000 of 200,000). Its /new resets the session, and any matching deny wins.
  openclaw: {
    newResets: true,
    "session.cacheTtlMs": 45_000,
    "session.compaction.reserveTokens": 20_000,
    "session.compaction.background": false,
    "session.compaction.keepPercent": 0,
    "session.compaction.minMessages": 0,
    "session.compaction.keepRecentTokens": 20_000,
    "session.compaction.preferCheckpoint": false,
    "session.compaction.deadlineMs": 180_000,
    "session.checkpoint.enabled": false,
    "session.memoryFlush.enabled": true,
    "session.memoryFlush.thresholds": [
      {
        percent: 88,
        prompt: [
          "Pre-compaction memory flush: at {percent}% of the context older messages will soon be summarized.",
          "Store what must last in memory/YYYY-MM-DD.md; add to the file, never overwrite it.",
          "If nothing to store, reply with NO_REPLY.",
        ].join("\n"),
        injectAs: "user",
      },
    ],
    "session.sendPolicyMode": "deny-overrides",
  },
};
