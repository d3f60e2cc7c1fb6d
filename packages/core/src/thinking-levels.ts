/** How long a model may think before it answers, from not at all to longest. Adapters translate them for their providers. */
export const thinkingLevels: readonly string[] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
