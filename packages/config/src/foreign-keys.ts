/** Keys of other programs' configurations that have no effect here, each with the reason. They are taken with a note. */
export const foreignKeys: Readonly<Record<string, string>> = {
  "agents.defaults.memorySearch":
    "memory_search finds words in the memory folder and in sessions, without a provider, a model or an index of its own",
};
