/** The levels are ordered from no thinking to the longest thinking. Adapters translate them for their providers. */
export const thinkingLevels: readonly string[] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
