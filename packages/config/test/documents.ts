/** The configuration blocks of the documents this project began with, with their values and in their order. */

/** The page on session management. */
export const managementBlock: string = `{
  "session": {
    "store": "sqlite",
    "storePath": "~/.openclaw/sessions.db",

    "checkpoint": {
      "enabled": true,
      "tokenThresholdPercents": [25, 50, 75],
      "turnThreshold": 10,
      "minTokensForGen": 5000
    },

    "compaction": {
      "reserveTokens": 30000,
      "preferCheckpoint": true,
      "retryIntervalSeconds": 60,
      "ollamaFailureThreshold": 3,
      "ollamaResetMinutes": 30,
      "ollama": {
        "url": "http://localhost:11434",
        "model": "qwen2.5:7b",
        "timeoutSeconds": 600,
        "contextTokens": 131072
      }
    }
  }
}
`;

/** The specification of persistence, first block. */
export const persistenceBlock: string = `{
  "session": {
    "storage": "jsonl",
    "path": "~/.openclaw/agents/main/sessions",
    "inherit": true,
    "defaultKey": "agent:main:main",

    "checkpoint": {
      "enabled": true,
      "model": "anthropic/claude-3-haiku",
      "fallbackToMain": true,
      "tokenThresholdPercents": [25, 50, 75],
      "turnThreshold": 15,
      "minTokensForGen": 10000
    },

    "memoryFlush": {
      "enabled": true,
      "showInSystemPrompt": true,
      "thresholds": [
        {
          "percent": 50,
          "prompt": "Context at 50%. Consider noting key decisions to memory.",
          "injectAs": "system"
        },
        {
          "percent": 75,
          "prompt": "Context at 75%. Write important context to memory/YYYY-MM-DD.md now.",
          "injectAs": "system"
        },
        {
          "percent": 90,
          "prompt": "[SYSTEM: pre-compaction memory flush]\\nContext at 90%. Compaction imminent.\\nStore durable memories now (use memory/YYYY-MM-DD.md).\\nIf nothing to store, reply with NO_REPLY.",
          "injectAs": "user"
        }
      ]
    },

    "compaction": {
      "reserveTokens": 4000,
      "preferCheckpoint": true
    }
  }
}
`;

/** The same, second block. */
export const migrationBlock: string = `{
  "session": {
    "store": "sqlite",
    "path": "~/.openclaw/goclaw/sessions.db",
    "inherit": {
      "enabled": true,
      "source": "~/.openclaw/agents/main/sessions",
      "format": "jsonl"
    }
  }
}
`;

/** Send policies, as they stand there: without quotes. */
export const policyBlock: string = `{
  session: {
    sendPolicy: {
      default: "allow",
      rules: [
        {
          match: { channel: "discord", chatType: "group" },
          action: "deny"
        },
        {
          match: { keyPrefix: "agent:main:slack" },
          action: "allow"
        }
      ]
    }
  }
}
`;
